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

  it('takes measures of the server where they are of the same parts', () => {
    const measured = blocksOf(REQUEST).map((_, at) => ({ bytes: at, tokens: 10 * at }));
    const blocks = blocksOf(REQUEST, measured);
    expect(blocks.map((block) => block.tokens)).toEqual([0, 10, 20, 30, 40, 50, 60]);
    expect(blocks.map((block) => block.name)).toEqual(blocksOf(REQUEST).map((block) => block.name));
    expect(blocksOf(REQUEST, measured.slice(1))).toEqual(blocksOf(REQUEST));
    expect(blocksOf(REQUEST, null)).toEqual(blocksOf(REQUEST));
  });

  it('shows what fits the last message apart from it, with the reason', () => {
    const note = '<system_notice>These are not in your lists and fit.\n- `a`: b</system_notice>';
    const messages = [{ role: 'user', text: `find it\n\n${note}` }];
    const request = { ...REQUEST, messages };
    const cut = blocksOf(request).filter((block) => ['message', 'matched'].includes(block.kind));
    expect(cut.map((block) => block.text)).toEqual(['find it', note]);
    const measured = blocksOf(request).map((block) => ({
      bytes: 1,
      tokens: 1,
      ...(block.kind === 'matched' ? { why: 'fits' } : {}),
    }));
    const [matched] = blocksOf(request, measured).filter((block) => block.kind === 'matched');
    expect(matched?.why).toBe('fits');
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
