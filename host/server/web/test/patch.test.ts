import { describe, expect, it } from 'vitest';
import { modeOf, readPatch, unquoted } from '../src/lib/patch';

const PATCH = `diff --git a/list.txt b/list.txt
index 1..2
--- a/list.txt
+++ b/list.txt
@@ -1,3 +1,3 @@
 one
--- two
+++ 2
 three
diff --git a/new.md b/new.md
new file mode 100644
index 0..3
--- /dev/null
+++ b/new.md
@@ -0,0 +1 @@
+diff --git a/x b/x
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/\\303\\274 \\"x\\".txt" "b/\\303\\274 \\"x\\".txt"
--- "a/\\303\\274 \\"x\\".txt"
+++ "b/\\303\\274 \\"x\\".txt"
@@ -1 +1 @@
-a
+b
`;

describe('a patch', () => {
  const files = readPatch(PATCH);

  it('is read by file', () => {
    expect(files.map((file) => file.path)).toEqual(['list.txt', 'new.md', 'gone.txt', 'run.sh', 'ü "x".txt']);
    expect(files.map((file) => file.hunks.length)).toEqual([1, 1, 1, 0, 1]);
  });

  it('takes no line of a file for a head', () => {
    expect(files[0]?.hunks[0]?.lines).toEqual([
      { kind: 'same', text: 'one', before: 1, after: 1 },
      { kind: 'removed', text: '-- two', before: 2 },
      { kind: 'added', text: '++ 2', after: 2 },
      { kind: 'same', text: 'three', before: 3, after: 3 },
    ]);
    expect(files[1]?.hunks[0]?.lines).toEqual([
      { kind: 'added', text: 'diff --git a/x b/x', after: 1 },
      { kind: 'note', text: 'No newline at end of file' },
    ]);
  });

  it('has names as git quotes them', () => {
    expect(unquoted('\\303\\244\\t\\\\')).toBe('ä\t\\');
  });
});

describe('the mode of a file', () => {
  it('is said where it changes, or is not that of any other', () => {
    const of = (head: string) => modeOf(readPatch(`diff --git a/x b/x\n${head}`)[0] ?? { path: '', head: [], hunks: [] });
    expect(of('new file mode 100644\n')).toBeUndefined();
    expect(of('index 1..2\n')).toBeUndefined();
    expect(of('new file mode 100755\n')).toEqual({ before: undefined, after: '100755' });
    expect(of('old mode 100644\nnew mode 100755\n')).toEqual({ before: '100644', after: '100755' });
    expect(of('new file mode 120000\n')?.after).toBe('120000');
  });
});
