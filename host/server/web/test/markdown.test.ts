import { describe, expect, it, vi } from 'vitest';

// The HTML that comes before the sanitiser is looked at: it has to be harmless without one.
const seen: string[] = [];
vi.mock('dompurify', () => ({ default: { addHook: () => {}, sanitize: (html: string) => seen.push(html) } }));
const { parts, readable } = await import('../src/lib/markdown');

function html(source: string): string | undefined {
  seen.length = 0;
  const found = parts(readable(source));
  found?.forEach((part) => part.nodes());
  return found && seen.join('');
}

const TAGS = /<(?!\/?(?:a|blockquote|br|code|del|div|em|h[1-6]|hr|li|ol|p|pre|span|strong|table|tbody|td|th|thead|tr|ul)\b)/;

describe('what is read as markdown', () => {
  it('keeps its meaning', () => {
    expect(html('# Tides\n\nLow at **12:30**, `a<b` &amp; *so*.')).toContain('<strong>12:30</strong>');
    expect(html('| a |\n| - |\n| **b** |')).toContain('<td><strong>b</strong></td>');
    expect(html('a &lt;b&gt; &amp; c')).toContain('a &lt;b&gt; &amp; c');
  });

  it('has no markup but its own', () => {
    for (const text of [
      'x <kbd><div/class="shade"/>',
      'x <kbd><a/href="https&#58;//evil.example/"/class="button primary">Log&#32;in<&#47;a>',
      'x <kbd><svg/onload=alert(1)>',
      'x <pre><img/src=x/onerror=alert(1)>',
      'x <script><p/class=question>',
      '- <code><svg/onload=alert(1)>',
      '| <kbd><svg/onload=alert(1)> |\n| - |\n| <kbd><svg/onload=alert(1)> |',
      '[x <kbd><b/id=y>](https://example.org)',
      '# <kbd><style/>*{}',
    ]) {
      const made = html(text) ?? '';
      expect(made, text).not.toMatch(TAGS);
      expect(made, text).not.toMatch(/<[^>]*\b(?:onload|onerror|class=["']?(?:shade|question|button))/);
    }
  });

  it('is shown as it is where it nests without end', () => {
    for (const text of ['>'.repeat(5_000), `${'- '.repeat(2_000)}x`, `${'1. '.repeat(100)}x`, `a\n${'> - '.repeat(40)}x`]) {
      expect(html(text), text.slice(0, 20)).toBeUndefined();
    }
    for (const text of ['['.repeat(5_000), '*a '.repeat(5_000), `${'**a'.repeat(3_000)}${'**'.repeat(3_000)}`, '<div>'.repeat(5_000)]) {
      expect(() => html(text), text.slice(0, 20)).not.toThrow();
    }
  });

  it('is all there, however long its runs are', () => {
    const words = [...Array(8_000).keys()].map((one) => `w${one}`).join(' ');
    const text = (html(`**a** ${words}`) ?? '').replace(/<[^>]*>/g, '');
    expect(text.split(/\s+/).filter((word) => /^w\d+$/.test(word))).toHaveLength(8_000);
  });

  it('falls into parts that follow one another', () => {
    const source = readable('# One\r\n\r\ntwo\nthree\n\n- four\n\n```\nfive\n');
    const found = parts(source) ?? [];
    expect(found.length).toBeGreaterThan(3);
    expect(found.reduce((sum, part) => sum + part.length, 0)).toBe(source.length);
  });
});
