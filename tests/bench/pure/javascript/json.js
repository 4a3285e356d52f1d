// Records written as JSON and read again.
function run(loops) {
  const records = Array.from({ length: 200 }, (_, id) => ({
    id, name: `record ${id}`, ratio: id / 7, tags: ["tide", "wind", "\u00e9clair"],
    nested: { open: id % 2 === 0, none: null, list: [id, id + 1, [id + 2]] },
  }));
  for (let round = 0; round < loops; round++) {
    if (JSON.parse(JSON.stringify(records)).length !== 200) throw new Error("another result");
  }
}
