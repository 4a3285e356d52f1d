// `word_count`: counts the words of a text file. Make it yours.

import { files, t, tool } from "belljar-tool";
export { tools } from "belljar-tool";

const count = (text: string) => text.split(/\s+/).filter((word) => word !== "").length;

tool({
  name: "word_count",
  description: "Counts the words of a text file.",
  readOnly: true,
  idempotent: true,
  arguments: {
    path: t.string("The file, relative to the workspace."),
  },
  run({ path }) {
    return `${path}: ${count(files.read(path))} words`;
  },
});
