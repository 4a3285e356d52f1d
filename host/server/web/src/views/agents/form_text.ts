/**
 * Edits fields of an agent's frontmatter in its text. The text is the one source of truth: a form is
 * read from it and each change of the form is a change of the text, in which every other byte stays,
 * comments and order included. Text that is not valid YAML is left alone.
 */
import { isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { Document, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

import { lineEnd, split } from './frontmatter';
import type { NoParts, Parts } from './frontmatter';

/** The value of a field, as the form has it. `undefined` takes the field away. */
export type Value = string | number | boolean | string[] | undefined;

/** Where a field stands: its name, and for a field within another one both names. */
export type Path = readonly [string] | readonly [string, string];

/** Why no form can be shown. */
export interface Unreadable {
  why: NoParts | 'yaml' | 'not-fields';
  /** The line of the text, from 1; 0 = unknown. */
  line: number;
}

interface Read {
  doc: Document.Parsed;
  map: YAMLMap.Parsed | null;
  parts: Parts;
  yaml: string;
}

type Range = [start: number, end: number];

/** A text whose fields can be read and changed. */
export class FormText {
  private constructor(
    /** The whole text. */
    readonly text: string,
    private readonly read: Read,
  ) {}

  /** Reads a text; says why where it has no fields that could be edited. */
  static of(text: string): FormText | Unreadable {
    const parts = split(text);
    if (typeof parts === 'string') return { why: parts, line: parts === 'none' ? 1 : 0 };
    const yaml = text.slice(parts.yamlStart, parts.yamlEnd);
    const doc = parseDocument(yaml, {
      keepSourceTokens: true,
      uniqueKeys: true,
    });
    const fault = doc.errors[0];
    if (fault !== undefined) {
      return {
        why: 'yaml',
        line: lineOf(text, parts.yamlStart + fault.pos[0]),
      };
    }
    if (doc.contents !== null && !isMap(doc.contents)) {
      const empty = isScalar(doc.contents) && doc.contents.value === null;
      if (!empty) return { why: 'not-fields', line: lineOf(text, parts.yamlStart) };
    }
    const map = isMap(doc.contents) ? (doc.contents as YAMLMap.Parsed) : null;
    if (map?.flow === true) return { why: 'not-fields', line: lineOf(text, parts.yamlStart) };
    return new FormText(text, { doc, map, parts, yaml });
  }

  /** The names of all fields, as they stand in the text. */
  fields(): string[] {
    return (this.read.map?.items ?? []).map((pair) => keyOf(pair));
  }

  /** A field's value where it is a text or a number; `null` where it is absent or of another kind. */
  scalar(path: Path): string | number | boolean | null {
    const node = this.node(path);
    if (!isScalar(node)) return null;
    const { value } = node;
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      ? value
      : null;
  }

  /** A field's value as a list of names; `null` where it is absent. Commas part a text. */
  list(path: Path): string[] | null {
    const node = this.node(path);
    if (isSeq(node)) return node.items.map(nameOf).filter((name) => name !== '');
    if (!isScalar(node) || node.value === null) return null;
    return String(node.value)
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
  }

  /** Whether a field is there in a form that this form cannot edit, such as a map of tools. */
  isOther(path: Path, wants: 'scalar' | 'list'): boolean {
    const node = this.node(path);
    if (node === null || node === undefined) return false;
    if (wants === 'list') return !isSeq(node) && !isScalar(node);
    return !isScalar(node);
  }

  /** The text with another value of a field. */
  with(path: Path, value: Value): string {
    const [name, inner] = path;
    if (inner !== undefined) return this.withInner(name, inner, value);
    const pair = this.pair(name);
    if (value === undefined) return pair === null ? this.text : this.splice(this.lines(pair), '');
    if (pair === null) return this.append(name, value);
    const node = pair.value;
    if (Array.isArray(value)) {
      if (isSeq(node)) return this.withItems(node as YAMLSeq.Parsed, value, pair);
      const asText = isScalar(node) && typeof node.value === 'string' && node.value.includes(',');
      return this.put(pair, asText ? scalar(value.join(', ')) : flow(value));
    }
    return this.put(pair, scalar(value, node));
  }

  /** Changes a field within another one, which is made or taken away as needed. */
  private withInner(name: string, inner: string, value: Value): string {
    const outer = this.pair(name);
    const map = outer?.value;
    if (outer === null || !isMap(map)) {
      if (value === undefined) return this.text;
      const line = `${inner}: ${written(value)}`;
      if (outer !== null) return this.put(outer, `${this.eol()}  ${line}`);
      return this.appendLines(`${name}:${this.eol()}  ${line}${this.eol()}`);
    }
    const rest = map.items.filter((pair) => keyOf(pair as Pair) !== inner);
    if (value === undefined && rest.length === 0 && map.items.length > 0) {
      return this.with([name], undefined);
    }
    const pair = map.items.find((pair) => keyOf(pair as Pair) === inner) as Parsed | undefined;
    if (map.flow === true) return this.withFlow(outer, map as YAMLMap, inner, value);
    if (pair === undefined) {
      if (value === undefined) return this.text;
      const last = map.items.at(-1) as Parsed | undefined;
      if (last === undefined) return this.put(outer, `${this.eol()}  ${inner}: ${written(value)}`);
      const indent = this.indentOf(last.key.range[0]);
      const [, end] = this.lines(last);
      return this.splice(
        [end, end],
        `${this.breakBefore(end)}${indent}${inner}: ${written(value)}${this.eol()}`,
      );
    }
    if (value === undefined) return this.splice(this.lines(pair), '');
    if (Array.isArray(value) && isSeq(pair.value)) {
      return this.withItems(pair.value as YAMLSeq.Parsed, value, pair);
    }
    return this.put(pair, Array.isArray(value) ? flow(value) : scalar(value, pair.value));
  }

  /** A map on one line is written anew: there is no room for comments in it. */
  private withFlow(outer: Parsed, map: YAMLMap, inner: string, value: Value): string {
    const entries = map.items.map((pair) => {
      const key = keyOf(pair as Pair);
      const [start, end] = (pair.value as { range: [number, number, number] } | null)?.range ?? [
        0, 0,
      ];
      return [key, this.read.yaml.slice(start, end)] as [string, string];
    });
    const at = entries.findIndex(([key]) => key === inner);
    if (value === undefined) entries.splice(at, at < 0 ? 0 : 1);
    else if (at < 0) entries.push([inner, written(value)]);
    else entries[at] = [inner, written(value)];
    return this.put(outer, `{ ${entries.map(([key, text]) => `${key}: ${text}`).join(', ')} }`);
  }

  /** Adds and takes away items of a list, each on its own line or between brackets. */
  private withItems(seq: YAMLSeq.Parsed, wanted: string[], pair: Parsed): string {
    const items = seq.items as (Scalar.Parsed | YAMLMap.Parsed)[];
    const has = items.map(nameOf);
    const added = wanted.filter((name) => !has.includes(name));
    const kept = items.filter((item) => wanted.includes(nameOf(item)) || !isScalar(item));
    if (added.length === 0 && kept.length === items.length) return this.text;
    if (seq.flow === true || kept.length === 0) {
      const raw = kept.map((item) => this.read.yaml.slice(item.range[0], item.range[1]));
      return this.put(pair, `[${[...raw, ...added.map(plain)].join(', ')}]`);
    }
    const edits: [Range, string][] = items
      .filter((item) => !kept.includes(item))
      .map((item) => [this.wholeLines(item.range[0], item.range[1]), '']);
    const last = items.at(-1);
    if (added.length > 0 && last !== undefined) {
      const [start, end] = this.wholeLines(last.range[0], last.range[1]);
      const lead = /^[ \t]*-[ \t]*/.exec(this.read.yaml.slice(start))?.[0] ?? '  - ';
      const lines = added.map((name) => `${lead}${plain(name)}${this.eol()}`).join('');
      edits.push([[end, end], `${this.breakBefore(end)}${lines}`]);
    }
    return this.apply(edits);
  }

  private node(path: Path): unknown {
    const pair = this.pair(path[0]);
    if (path[1] === undefined) return pair?.value ?? null;
    const map = pair?.value;
    if (!isMap(map)) return null;
    return map.items.find((inner) => keyOf(inner as Pair) === path[1])?.value ?? null;
  }

  private pair(name: string): Parsed | null {
    const found = this.read.map?.items.find((pair) => keyOf(pair) === name);
    return (found as Parsed | undefined) ?? null;
  }

  /** Replaces what stands behind a key and its colon; a comment behind it stays. */
  private put(pair: Parsed, text: string): string {
    const node = pair.value;
    const afterKey = this.read.yaml.indexOf(':', pair.key.range[1]) + 1;
    if (node === null || node === undefined || node.range[0] === node.range[1]) {
      const blanks = /^[ \t]*(?=[\r\n]|$)/.exec(this.read.yaml.slice(afterKey))?.[0].length ?? 0;
      return this.splice(
        [afterKey, afterKey + blanks],
        text.startsWith('\n') || text.startsWith('\r') ? text : ` ${text}`,
      );
    }
    const end = trimmedEnd(this.read.yaml, node.range[0], node.range[1]);
    const lead = text.startsWith('\n') || text.startsWith('\r') ? '' : ' ';
    // A block below the key moves up to its line; a value on the line keeps its place.
    const below = this.read.yaml.slice(afterKey, node.range[0]).includes('\n');
    if (below || lead === '') return this.splice([afterKey, end], `${lead}${text}`);
    return this.splice([node.range[0], end], text);
  }

  private append(name: string, value: Exclude<Value, undefined>): string {
    return this.appendLines(`${name}: ${written(value)}${this.eol()}`);
  }

  private appendLines(lines: string): string {
    const end = this.read.yaml.length;
    return this.splice([end, end], `${this.breakBefore(end)}${lines}`);
  }

  /** The whole lines of a field, with the comment behind its value. */
  private lines(pair: Parsed): Range {
    const start = pair.key.range[0];
    const end = pair.value?.range?.[1] ?? this.read.yaml.indexOf(':', pair.key.range[1]) + 1;
    return this.wholeLines(
      start,
      Math.max(end, this.read.yaml.indexOf(':', pair.key.range[1]) + 1),
    );
  }

  private wholeLines(start: number, end: number): Range {
    const { yaml } = this.read;
    const from = yaml.lastIndexOf('\n', start - 1) + 1;
    const last = trimmedEnd(yaml, start, end);
    const to = yaml.indexOf('\n', last);
    return [from, to < 0 ? yaml.length : to + 1];
  }

  private indentOf(offset: number): string {
    const from = this.read.yaml.lastIndexOf('\n', offset - 1) + 1;
    return this.read.yaml.slice(from, offset);
  }

  private breakBefore(end: number): string {
    const { yaml } = this.read;
    return end === 0 || yaml[end - 1] === '\n' ? '' : this.eol();
  }

  private eol(): string {
    return lineEnd(this.text);
  }

  private splice(range: Range, by: string): string {
    return this.apply([[range, by]]);
  }

  private apply(edits: [Range, string][]): string {
    const start = this.read.parts.yamlStart;
    return edits
      .sort(([a], [b]) => b[0] - a[0])
      .reduce(
        (text, [[from, to], by]) => text.slice(0, start + from) + by + text.slice(start + to),
        this.text,
      );
  }
}

type Parsed = Pair & {
  key: Scalar.Parsed;
  value: (Scalar.Parsed & { range: [number, number, number] }) | null;
};

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : '';
}

function nameOf(item: unknown): string {
  return isScalar(item) && item.value !== null ? String(item.value).trim() : '';
}

/** A value as YAML on one line. */
function written(value: Exclude<Value, undefined>): string {
  return Array.isArray(value) ? flow(value) : scalar(value);
}

function flow(names: string[]): string {
  return `[${names.map(plain).join(', ')}]`;
}

/** A value as YAML on one line, quoted as the old one was where it was quoted. */
function scalar(value: string | number | boolean, old?: unknown): string {
  if (typeof value !== 'string') return String(value);
  const was = isScalar(old) ? old.type : undefined;
  if (was === 'QUOTE_SINGLE' && !/[\n\r\t]/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  if (was === 'QUOTE_DOUBLE') return double(value);
  return plain(value);
}

/** A text without quotes where YAML reads it back as the same text, else between double ones. */
function plain(value: string): string {
  if (value === '' || /[\n\r\t]/.test(value) || value !== value.trim()) return double(value);
  if (/[[\]{},]/.test(value) || /^[-?:!&*|>%@`"'#]/.test(value)) return double(value);
  const back = parseDocument(value);
  const same = back.errors.length === 0 && isScalar(back.contents) && back.contents.value === value;
  return same && !/(: )|( #)|(:$)/.test(value) ? value : double(value);
}

function double(value: string): string {
  // JSON is YAML; what no screen shows is written as an escape.
  return JSON.stringify(value).replace(
    /[\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The end of a value without the line ends, blanks and comments behind it. */
function trimmedEnd(yaml: string, start: number, end: number): number {
  return start + yaml.slice(start, end).trimEnd().length;
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}
