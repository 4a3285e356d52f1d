import { describe, expect, it } from 'vitest';

import { cellOf, drawnRows, moved, narrowed, windowOf } from './matrix';
import type { AgentRights, RightsTool } from './matrix';

const tool = (name: string): RightsTool => ({
  name,
  origin: 'stock',
  read_only: false,
});
const agent = (name: string, cells: string[]): AgentRights => ({
  agent: name,
  slug: name,
  scope: 'home',
  status: 'ready',
  reasons: [],
  cells,
  mounts: {},
  hosts: [],
  secrets: [],
  limits: {},
  withheld: [],
});

describe('a cell', () => {
  it('says the answer and who gave it', () => {
    expect(cellOf('allow')).toEqual({ may: 'allow', by: null });
    expect(cellOf('no-host')).toEqual({ may: 'no-host', by: null });
    expect(cellOf('ask:grants')).toEqual({ may: 'ask', by: 'grants' });
    expect(cellOf('deny:definition')).toEqual({
      may: 'deny',
      by: 'definition',
    });
    expect(cellOf('absent')).toEqual({ may: 'absent', by: null });
  });

  it('that is not understood gives nothing', () => {
    for (const odd of [undefined, '', 'allowed', 'ALLOW', 'yes:grants', 'toString']) {
      expect(cellOf(odd).may, String(odd)).toBe('deny');
    }
    expect(cellOf('deny:nobody').by).toBeNull();
  });
});

describe('a filter', () => {
  const agents = [agent('scout', ['allow', 'deny:grants']), agent('Fixer', ['deny', 'deny'])];
  const tools = [tool('file_read'), tool('shell')];

  it('takes parts of names, in any case', () => {
    const narrow = (agent: string, tool: string): unknown =>
      narrowed(agents, tools, { agent, tool, usedOnly: false });
    expect(narrow('', '')).toEqual({ rows: [0, 1], columns: [0, 1] });
    expect(narrow(' fix ', 'SH')).toEqual({ rows: [1], columns: [1] });
    expect(narrow('nobody', '')).toEqual({ rows: [], columns: [0, 1] });
  });

  it('leaves out tools that no row shown may use', () => {
    const filter = { agent: '', tool: '', usedOnly: true };
    expect(narrowed(agents, tools, filter).columns).toEqual([0]);
    expect(narrowed(agents, tools, { ...filter, agent: 'fixer' }).columns).toEqual([]);
  });
});

describe('the window of rows', () => {
  it('holds what is seen and some beside, never more than there is', () => {
    expect(windowOf(200, 32, 0, 640)).toEqual({ first: 0, last: 26 });
    expect(windowOf(200, 32, 3200, 640)).toEqual({ first: 94, last: 126 });
    expect(windowOf(200, 32, 1e9, 640)).toEqual({ first: 200, last: 200 });
    expect(windowOf(0, 32, 0, 640)).toEqual({ first: 0, last: 0 });
    expect(windowOf(3, 32, 0, 640)).toEqual({ first: 0, last: 3 });
  });
});

describe('the rows that are drawn', () => {
  it('hold the one with the focus, in order and once', () => {
    expect(drawnRows(3, 6, 4)).toEqual([3, 4, 5]);
    expect(drawnRows(3, 6, 0)).toEqual([0, 3, 4, 5]);
    expect(drawnRows(3, 6, 6)).toEqual([3, 4, 5, 6]);
    expect(drawnRows(0, 0, -1)).toEqual([]);
  });
});

describe('a key', () => {
  it('moves the focus and stops at the edges', () => {
    const at = { row: 0, column: 0 };
    expect(moved('j', at, 3, 2)).toEqual({ row: 1, column: 0 });
    expect(moved('ArrowUp', at, 3, 2)).toEqual(at);
    expect(moved('End', at, 3, 2)).toEqual({ row: 0, column: 1 });
    expect(moved('PageDown', at, 3, 2)).toEqual({ row: 2, column: 0 });
    expect(moved('l', at, 0, 0)).toEqual({ row: 0, column: 0 });
    expect(moved('x', at, 3, 2)).toBeNull();
  });
});
