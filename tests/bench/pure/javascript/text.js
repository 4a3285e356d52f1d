// Words of a text found by a regular expression, counted in a map and sorted.
function run(loops) {
  const text = "the bell rang at six and the tide came in at seven; the harbour was still ".repeat(100);
  for (let round = 0; round < loops; round++) {
    const counts = new Map();
    for (const [word] of text.matchAll(/[a-z]+/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    if (sorted[0].join() !== "the,300") throw new Error("another result");
  }
}
