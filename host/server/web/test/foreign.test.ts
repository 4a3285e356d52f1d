import { describe, expect, it } from 'vitest';
import { cut, exact, hides, line, visible } from '../src/lib/foreign';

describe('foreign text', () => {
  it('shows what would hide or turn round', () => {
    expect(visible('a\u202eb')).toBe('a⟨U+202E⟩b');
    expect(visible('a\u200bb\u2066c\u0000\u001b[31m\u00ad')).toBe('a⟨U+200B⟩b⟨U+2066⟩c⟨U+0000⟩⟨U+001B⟩[31m⟨U+00AD⟩');
    expect(visible('x\u{e0041}')).toBe('x⟨U+E0041⟩');
    expect(visible('x\ud800')).toBe('x⟨U+D800⟩');
    expect(hides('plain, über, 日本語, שלום, 👩‍👩‍👧')).toBe(true);
    expect(visible('über 日本語 שלום\tتبويب\nend')).toBe('über 日本語 שלום\tتبويب\nend');
  });

  it('keeps line ends and marks a carriage return that would write over', () => {
    expect(visible('a\r\nb\rc')).toBe('a\nb⟨U+000D⟩c');
  });

  it('draws no towers of marks', () => {
    expect(visible('e\u0301')).toBe('e\u0301');
    const tower = visible('Z' + '\u0301\u0302\u0303\u0304\u0305\u0306'.repeat(100));
    expect(tower).toBe('Z\u0301\u0302\u0303\u0304⟨+596 marks⟩');
  });

  it('is cut between characters', () => {
    expect(cut('a😀b', 2)).toBe('a');
    expect(cut('a😀b', 3)).toBe('a😀');
    expect(cut('abc', 9)).toBe('abc');
  });

  it('is one line in a list, however long it is', () => {
    expect(line('a\n b\tc')).toBe('a ↵ b c');
    const long = line('x'.repeat(1 << 20));
    expect(long.length).toBe(301);
    expect(long.endsWith('…')).toBe(true);
  });
});

describe('a path', () => {
  it('is not taken for another one because of its blanks', () => {
    expect(exact('src/a b.md')).toBe('src/a b.md');
    expect(exact(' README.md ')).toBe('␣README.md␣');
    expect(exact('a  b')).toBe('a␣␣b');
    expect(exact('notes.md\u00a0')).toBe('notes.md⟨U+00A0⟩');
    expect(exact('a\u3000b\u2800')).toBe('a⟨U+3000⟩b⟨U+2800⟩');
    expect(exact('x'.repeat(400)).length).toBe(301);
  });
});
