import { describe, expect, it } from 'vitest';

import { blocksOf, byKind } from './blocks';

const REQUEST = {
  system: ['You find files.\n', '# Subagents\n\nThese.', '# Skills\n\nThose.', 'Be brief.'],
  messages: [
    { role: 'user', text: 'häl' },
    { role: 'assistant', text: 'x', calls: [{ name: 'file_list' }] },
  ],
  tools: [{ name: 'file_list', description: 'Lists.', schema: { type: 'object' } }],
};

describe('a request', () => {
  it('is cut into what each part is for, in the order of sending', () => {
    expect(blocksOf(REQUEST).map((block) => [block.kind, block.name])).toEqual([
      ['system', ''],
      ['discovery', 'Subagents'],
      ['skills', 'Skills'],
      ['advice', ''],
      ['message', 'user'],
      ['message', 'assistant'],
      ['tool', 'file_list'],
    ]);
  });

  it('shows texts as they are and counts their bytes', () => {
    const blocks = blocksOf(REQUEST);
    expect(blocks[0]?.text).toBe('You find files.\n');
    expect(blocks[4]).toMatchObject({ text: 'häl', bytes: 4, tokens: 1 });
    expect(blocks[5]?.text).toContain('file_list');
    expect(blocks[6]?.bytes).toBe(JSON.stringify(REQUEST.tools[0]).length);
  });

  it('takes measures of the server where there are some', () => {
    const measured = [
      { kind: 'system', name: '', bytes: 16, tokens: 5 },
      { kind: 'tool', name: 'file_list', bytes: 1, tokens: 77 },
      { kind: 'new-word', name: 'x', bytes: 1, tokens: 1, text: 'own' },
    ];
    const blocks = blocksOf(REQUEST, measured);
    expect(blocks.map((block) => block.tokens)).toEqual([5, 77, 1]);
    expect(blocks[1]?.text).toContain('"Lists."');
    expect(blocks[2]).toMatchObject({ kind: 'advice', text: 'own' });
  });

  it('of another form is empty rather than an error', () => {
    for (const odd of [null, undefined, {}, { system: 'x' }, { messages: {}, tools: null }]) {
      expect(blocksOf(odd)).toEqual([]);
    }
  });

  it('is summed by kind without a token lost', () => {
    const blocks = blocksOf(REQUEST);
    const sum = byKind(blocks).reduce((all, kind) => all + kind.tokens, 0);
    expect(sum).toBe(blocks.reduce((all, block) => all + block.tokens, 0));
    expect(byKind(blocks).find((kind) => kind.kind === 'message')?.count).toBe(2);
  });
});
