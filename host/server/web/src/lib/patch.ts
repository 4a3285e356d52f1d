/** What `git apply` takes, read into files, hunks and lines. */

/** A line of a diff. */
export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'note';
  text: string;
  before?: number;
  after?: number;
}

/** A run of lines that changed, with some around them. */
export interface Hunk {
  head: string;
  lines: DiffLine[];
}

/** The part of a patch that is about one file. */
export interface FilePatch {
  /** The path behind `b/`, or `a/` where the file is gone; as it stands there. */
  path: string;
  /** Lines before the first hunk: modes, renames, `Binary files differ`. */
  head: string[];
  hunks: Hunk[];
}

/** The mode of a file before and after, where it is not that of any other file. */
export function modeOf(file: FilePatch): { before: string | undefined; after: string | undefined } | undefined {
  const find = (words: RegExp) => file.head.map((row) => words.exec(row)?.[1]).find((mode) => mode !== undefined);
  const [before, after] = [find(/^old mode (\d+)$/), find(/^new (?:file )?mode (\d+)$/)];
  return after === undefined || (before === undefined && after === '100644') ? undefined : { before, after };
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The path in a `---` or `+++` line, without its prefix; quotes of git are taken off. */
function pathOf(line: string): string | null {
  let text = line.slice(4).replace(/\t$/, '');
  if (text === '/dev/null') return null;
  if (text.startsWith('"') && text.endsWith('"')) text = unquoted(text.slice(1, -1));
  return text.replace(/^[ab]\//, '');
}

/** Git's quoting: octal bytes and a few letters behind a backslash. */
export function unquoted(text: string): string {
  const out: number[] = [];
  const letters: Record<string, number> = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11, '"': 34, '\\': 92 };
  const encoder = new TextEncoder();
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at, at + 4);
    const octal = /^\\([0-3][0-7]{2})/.exec(rest);
    if (octal?.[1]) {
      out.push(parseInt(octal[1], 8));
      at += 4;
    } else if (rest.startsWith('\\') && letters[rest.charAt(1)] !== undefined) {
      out.push(letters[rest.charAt(1)] as number);
      at += 2;
    } else {
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0xfffd);
      out.push(...encoder.encode(character));
      at += character.length;
    }
  }
  return new TextDecoder().decode(new Uint8Array(out));
}

/** The files of a patch. A hunk's own counts say how long it is, so that no line of a file is
 * taken for a head. */
export function readPatch(patch: string): FilePatch[] {
  const files: FilePatch[] = [];
  let file: FilePatch | undefined;
  let hunk: Hunk | undefined;
  let [before, after, oldLeft, newLeft] = [0, 0, 0, 0];
  for (const row of patch.split('\n')) {
    if (hunk && (oldLeft > 0 || newLeft > 0)) {
      const text = row.slice(1);
      if (row.startsWith('+')) {
        hunk.lines.push({ kind: 'added', text, after: after++ });
        newLeft -= 1;
      } else if (row.startsWith('-')) {
        hunk.lines.push({ kind: 'removed', text, before: before++ });
        oldLeft -= 1;
      } else if (row.startsWith('\\')) {
        hunk.lines.push({ kind: 'note', text: row.slice(2) });
      } else {
        hunk.lines.push({ kind: 'same', text, before: before++, after: after++ });
        oldLeft -= 1;
        newLeft -= 1;
      }
      continue;
    }
    const head = HUNK.exec(row);
    if (head && file) {
      hunk = { head: row, lines: [] };
      file.hunks.push(hunk);
      before = Number(head[1]);
      after = Number(head[3]);
      oldLeft = head[2] === undefined ? 1 : Number(head[2]);
      newLeft = head[4] === undefined ? 1 : Number(head[4]);
    } else if (row.startsWith('diff --git ')) {
      hunk = undefined;
      file = { path: '', head: [row], hunks: [] };
      files.push(file);
    } else if (file && row.startsWith('\\') && hunk) {
      hunk.lines.push({ kind: 'note', text: row.slice(2) });
    } else if (file && !file.hunks.length) {
      file.head.push(row);
      const path = row.startsWith('--- ') || row.startsWith('+++ ') ? pathOf(row) : null;
      if (path !== null) file.path = path;
      const renamed = /^rename to (.*)$/.exec(row)?.[1];
      if (renamed !== undefined && !file.path) file.path = renamed.startsWith('"') ? unquoted(renamed.slice(1, -1)) : renamed;
    }
  }
  for (const one of files) {
    if (one.path) continue;
    // Neither `---` nor `+++`: a mode, an empty file. Both names are the same there.
    const names = one.head[0]?.slice('diff --git '.length) ?? '';
    const half = names.slice((names.length + 1) / 2);
    one.path = half.startsWith('"') ? unquoted(half.slice(1, -1)).replace(/^b\//, '') : half.replace(/^b\//, '');
  }
  return files;
}
