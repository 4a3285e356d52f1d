import { describe, expect, it } from 'vitest';
import type { ReceiptRow } from '../src/state/open';
import { effects } from '../src/views/sessions/receipt';
import { pairs } from '../src/views/sessions/pairs';

function row(over: Partial<ReceiptRow> & { args?: string; out?: string; position?: number }): ReceiptRow {
  const { args = 'a', out = 'o', position = 0, ...rest } = over;
  const receipt = {
    denials: rest.ok === false ? [{ code: 'path-not-allowed', what: 'open', facts: 'outside' }] : [],
    paths_read: ['/workspace/a.txt'],
    paths_written: [],
    hosts: [],
    secrets_used: ['token'],
    peak_memory: 1,
    bytes: { read: 1, written: 0, sent: 0, received: 0, output: 2 },
    arguments_digest: args,
    output_digest: out,
  };
  return {
    message: 'm', id: 'r', agent: 'main', step: 1, call_id: 'c', tool: 'file_read', ok: true, ending: 'completed',
    fuel: 1, micros: 1, created: 0, body: { receipt, position }, ...rest,
  } as ReceiptRow;
}

describe('receipts', () => {
  it('say together what was touched', () => {
    expect(effects([row({}), row({ ok: false, ending: 'denied' })])).toEqual({
      read: ['/workspace/a.txt'], written: [], hosts: [], secrets: ['token'], refused: 1,
    });
  });
});

describe('two runs', () => {
  it('are the same whatever ended first and however long it took', () => {
    const a = [row({ id: '1', call_id: 'x', args: '1', position: 0 }), row({ id: '2', call_id: 'y', args: '2', position: 1 })];
    const b = [row({ id: '3', call_id: 'q', args: '2', position: 1, micros: 99 }), row({ id: '4', call_id: 'p', args: '1', position: 0 })];
    expect(pairs(a, b).map((pair) => pair.differs)).toEqual([false, false]);
  });

  it('differ in arguments, output, ending, and in calls that only one made', () => {
    const base = row({});
    for (const other of [row({ args: 'z' }), row({ out: 'z' }), row({ ok: false, ending: 'denied' }), row({ tool: 'file_list' })]) {
      expect(pairs([base], [other]).map((pair) => pair.differs)).toEqual([true]);
    }
    expect(pairs([base], []).map((pair) => [pair.differs, pair.b])).toEqual([[true, undefined]]);
    expect(pairs([base], [base, row({ position: 1, step: 2 })]).map((pair) => pair.differs)).toEqual([false, true]);
  });
});
