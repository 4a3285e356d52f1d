import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';

import { FormText } from './form_text';
import type { Path, Value } from './form_text';
import { split } from './frontmatter';

const FILE = `---
# who it is
name: scout   # never change
description: Finds files.
# only what reads
tools:
  - file_list   # cheap
  # the one that matters
  - file_search
model: "fast" # cheap
maxTurns: 20
---
You find files.
tools: not a field
`;

function of(text: string): FormText {
  const read = FormText.of(text);
  if (!(read instanceof FormText)) throw new Error(`unreadable: ${read.why}`);
  return read;
}

/** Changes a field and checks that the text reads back as the value. */
function change(text: string, path: Path, value: Value): string {
  const next = of(text).with(path, value);
  const read = of(next);
  if (Array.isArray(value)) expect(read.list(path)).toEqual(value);
  else expect(read.scalar(path)).toBe(value ?? null);
  return next;
}

/** Lines that were added and taken away. */
function lines(before: string, after: string): string[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  return [
    ...a.filter((line) => !b.includes(line)).map((line) => `-${line}`),
    ...b.filter((line) => !a.includes(line)).map((line) => `+${line}`),
  ];
}

describe('a field of the form', () => {
  it('changes its own value and leaves the comment behind it', () => {
    const next = change(FILE, ['name'], 'looker');
    expect(lines(FILE, next)).toEqual([
      '-name: scout   # never change',
      '+name: looker   # never change',
    ]);
  });

  it('keeps its quotes', () => {
    expect(change(FILE, ['model'], 'strong')).toContain('model: "strong" # cheap\n');
    const single = FILE.replace('"fast"', "'fast'");
    expect(change(single, ['model'], "it's")).toContain("model: 'it''s' # cheap\n");
  });

  it('is added behind the last one', () => {
    const next = change(FILE, ['timeoutSeconds'], 30);
    expect(next).toContain('maxTurns: 20\ntimeoutSeconds: 30\n---\nYou find');
    expect(lines(FILE, next)).toEqual(['+timeoutSeconds: 30']);
  });

  it('is taken away with its line, and nothing else is', () => {
    expect(lines(FILE, change(FILE, ['maxTurns'], undefined))).toEqual(['-maxTurns: 20']);
    expect(change(FILE, ['visibility'], undefined)).toBe(FILE);
  });

  it('is taken away with all lines of its list', () => {
    const next = of(FILE).with(['tools'], undefined);
    expect(of(next).list(['tools'])).toBeNull();
    expect(next).toContain('# only what reads\nmodel:');
  });

  it('is written so that YAML reads the same text back', () => {
    for (const hostile of [
      'a: b # c',
      'yes',
      '12',
      'null',
      '- x',
      '[a]',
      '{a: b}',
      '*a',
      '&a',
      '!tag',
      '% x',
      '@x',
      '`x`',
      "'",
      '"',
      'a\nb',
      'a\r\n---\nb',
      '---',
      '...',
      ' x ',
      'x:',
      '#x',
      '\u202etxt\u200b\u0085\u2028',
      '',
      '\u0000\u0007',
      '~',
      '0x10',
      '2026-01-01',
      'a, b',
    ]) {
      const next = of(FILE).with(['description'], hostile);
      expect(of(next).scalar(['description']), JSON.stringify(hostile)).toBe(hostile);
      expect(of(next).scalar(['name'])).toBe('scout');
      expect(next.endsWith('\nYou find files.\ntools: not a field\n')).toBe(true);
    }
  });

  it('of several lines becomes one value', () => {
    const folded = FILE.replace('Finds files.', '>-\n  Finds files\n  of all kinds.');
    expect(of(folded).scalar(['description'])).toBe('Finds files of all kinds.');
    const next = change(folded, ['description'], 'Finds.');
    expect(next).toContain('description: Finds.\n# only what reads\ntools:\n');
  });

  it('that is empty gets its value', () => {
    const empty = FILE.replace('maxTurns: 20', 'maxTurns:');
    expect(change(empty, ['maxTurns'], 5)).toContain('maxTurns: 5\n---');
    const blank = FILE.replace('maxTurns: 20', 'maxTurns:  ');
    expect(change(blank, ['maxTurns'], 5)).toContain('maxTurns: 5\n---');
    const said = FILE.replace('maxTurns: 20', 'maxTurns: # soon');
    expect(of(change(said, ['maxTurns'], 5)).scalar(['maxTurns'])).toBe(5);
  });
});

describe('a list of the form', () => {
  it('gains an item on a line of its own, and the comments stay', () => {
    const next = change(FILE, ['tools'], ['file_list', 'file_search', 'file_find']);
    expect(lines(FILE, next)).toEqual(['+  - file_find']);
  });

  it('loses an item with its line alone', () => {
    const next = change(FILE, ['tools'], ['file_search']);
    expect(lines(FILE, next)).toEqual(['-  - file_list   # cheap']);
    expect(next).toContain('# the one that matters');
  });

  it('loses the last and gains another one at once', () => {
    const next = change(FILE, ['tools'], ['file_list', 'file_find']);
    expect(lines(FILE, next)).toEqual(['-  - file_search', '+  - file_find']);
  });

  it('that loses all is an empty list, which is no tool rather than all', () => {
    const next = change(FILE, ['tools'], []);
    expect(next).toContain('tools: []\nmodel:');
  });

  it('between brackets stays between brackets', () => {
    const short = '---\nname: a\ntools: [Read,  Write] # two\n---\nx\n';
    expect(change(short, ['tools'], ['Read', 'Grep'])).toBe(
      '---\nname: a\ntools: [Read, Grep] # two\n---\nx\n',
    );
  });

  it('of names with commas stays so', () => {
    const text = '---\nname: a\ntools: Read, Write # two\n---\nx\n';
    expect(of(text).list(['tools'])).toEqual(['Read', 'Write']);
    const next = of(text).with(['tools'], ['Read', 'Write', 'Grep']);
    expect(of(next).list(['tools'])).toEqual(['Read', 'Write', 'Grep']);
    expect(next).toMatch(/tools: "?Read, Write, Grep"? # two\n/);
  });

  it('is made where there was none', () => {
    const next = change('---\nname: a\n---\nx\n', ['tools'], ['file_read']);
    expect(next).toBe('---\nname: a\ntools: [file_read]\n---\nx\n');
  });

  it('as a map is said to be of another kind', () => {
    const map = of('---\nname: a\ntools:\n  Read: true\n---\nx\n');
    expect(map.isOther(['tools'], 'list')).toBe(true);
    expect(map.list(['tools'])).toBeNull();
  });
});

describe('fields within `subagents`', () => {
  const path = (inner: string): Path => ['subagents', inner];

  it('are made, changed and taken away, and the field goes with the last', () => {
    const bare = '---\nname: a\n---\nx\n';
    const one = change(bare, path('max_concurrent'), 2);
    expect(one).toBe('---\nname: a\nsubagents:\n  max_concurrent: 2\n---\nx\n');
    const two = change(one, path('allowed_agents'), ['scout', 'boss']);
    expect(two).toContain('  max_concurrent: 2\n  allowed_agents: [scout, boss]\n---');
    const three = change(two, path('max_concurrent'), 4);
    expect(of(three).list(path('allowed_agents'))).toEqual(['scout', 'boss']);
    const four = change(three, path('allowed_agents'), undefined);
    expect(change(four, path('max_concurrent'), undefined)).toBe(bare);
  });

  it('between braces stay there', () => {
    const text =
      '---\nname: a\nsubagents: { enabled: true, allowed_agents: [x, y] } # few\n---\nx\n';
    const next = change(text, path('max_concurrent'), 3);
    expect(next).toContain(
      'subagents: { enabled: true, allowed_agents: [x, y], max_concurrent: 3 } # few\n',
    );
    expect(change(next, path('enabled'), undefined)).toContain(
      'subagents: { allowed_agents: [x, y], max_concurrent: 3 } # few\n',
    );
  });

  it('keep the comments beside them', () => {
    const text =
      '---\nname: a\nsubagents:\n    # one at a time\n    max_concurrent: 1 # really\n    allowed_agents:\n      - scout # fast\n---\nx\n';
    const next = change(text, path('allowed_agents'), ['scout', 'boss']);
    expect(lines(text, next)).toEqual(['+      - boss']);
    const deep = change(next, path('max_depth'), 1);
    expect(deep).toContain('      - boss\n    max_depth: 1\n---');
  });
});

describe('a text that is not valid', () => {
  it('is not touched, and says where', () => {
    const broken = FILE.replace('maxTurns: 20', 'bad: [1, 2\nworse: }');
    const read = FormText.of(broken);
    expect(read).not.toBeInstanceOf(FormText);
    expect(read).toMatchObject({ why: 'yaml' });
    expect((read as { line: number }).line).toBeGreaterThanOrEqual(11);
  });

  it('may have no frontmatter, or one that never ends', () => {
    expect(FormText.of('You find files.\n')).toMatchObject({ why: 'none' });
    expect(FormText.of('---\nname: a\n')).toMatchObject({ why: 'unclosed' });
    expect(FormText.of('')).toMatchObject({ why: 'none' });
    expect(FormText.of('---\n- a\n- b\n---\nx\n')).toMatchObject({
      why: 'not-fields',
    });
    expect(FormText.of('---\nname: a\nname: b\n---\nx\n')).toMatchObject({
      why: 'yaml',
      line: 3,
    });
  });
});

describe('files of other systems', () => {
  it('keep CRLF, a byte order mark and long fences', () => {
    const text = `\ufeff\r\n${FILE.replaceAll('\n', '\r\n').replace('\r\n---\r\nYou', '\r\n-----\r\nYou')}`;
    const next = change(text, ['timeoutSeconds'], 9);
    expect(next.replace('timeoutSeconds: 9\r\n', '')).toBe(text);
    const more = change(text, ['tools'], ['file_list', 'file_search', 'x']);
    expect(more.replace('  - x\r\n', '')).toBe(text);
    expect(more).not.toMatch(/[^\r]\n/);
  });

  it('may have nothing between the fences', () => {
    expect(change('---\n---\nx\n', ['name'], 'a')).toBe('---\nname: a\n---\nx\n');
  });
});

describe('any order of changes', () => {
  it('leaves a text that YAML reads, with every comment', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor((seed / 2147483648) * below);
    };
    const names = ['file_list', 'file_search', 'file_find', 'Read', 'a b', 'x: y'];
    const values: [Path, () => Value][] = [
      [['description'], () => ['one', 'two: three', 'line\nbreak', '#'][random(4)]],
      [['timeoutSeconds'], () => (random(3) === 0 ? undefined : random(900) + 1)],
      [['visibility'], () => [undefined, 'internal', 'user-facing'][random(3)]],
      [['tools'], () => (random(6) === 0 ? undefined : names.filter(() => random(2) === 0))],
      [
        ['subagents', 'allowed_agents'],
        () => (random(3) === 0 ? undefined : names.filter(() => random(2) === 0)),
      ],
      [['subagents', 'max_concurrent'], () => (random(3) === 0 ? undefined : random(8) + 1)],
    ];
    let text = FILE;
    for (let round = 0; round < 500; round += 1) {
      const [path, make] = values[random(values.length)] as [Path, () => Value];
      const value = make();
      text = of(text).with(path, value);
      const read = of(text);
      if (Array.isArray(value)) expect(new Set(read.list(path))).toEqual(new Set(value));
      else expect(read.scalar(path)).toBe(value ?? null);
      const parts = split(text);
      if (typeof parts === 'string') throw new Error(parts);
      expect(parseDocument(text.slice(parts.yamlStart, parts.yamlEnd)).errors).toEqual([]);
      expect(text.slice(parts.bodyStart)).toBe('You find files.\ntools: not a field\n');
      expect(text).toContain('# who it is\nname: scout   # never change\n');
      expect(text).toContain('model: "fast" # cheap\n');
    }
  });
});
