// `word_count`: counts the words of a text file. Make it yours.

import { Args, files, Output, tool } from "belljar-assemblyscript/assembly";
export * from "belljar-assemblyscript/assembly/exports";

function count(text: string): i32 {
  let words = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    const space = text.charCodeAt(at) <= 32;
    if (!space && !inside) words++;
    inside = !space;
  }
  return words;
}

function run(args: Args): Output {
  const path = args.string("path");
  const text = files.read(path);
  if (text === null) return files.error();
  return Output.text(`${path}: ${count(text)} words`);
}

tool("word_count", "Counts the words of a text file.", run)
  .readOnly()
  .idempotent()
  .string("path", "The file, relative to the workspace.");
