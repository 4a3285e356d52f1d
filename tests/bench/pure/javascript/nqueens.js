// Queens on a board of eight, by generators that try one column after the other.
function run(loops) {
  function* boards(size, placed) {
    if (placed.length === size) { yield placed; return; }
    for (let row = 0; row < size; row++) {
      if (placed.every((other, column) =>
        other !== row && Math.abs(other - row) !== placed.length - column)) {
        yield* boards(size, [...placed, row]);
      }
    }
  }
  for (let round = 0; round < loops; round++) {
    let found = 0;
    for (const board of boards(8, [])) found += board.length / 8;
    if (found !== 92) throw new Error("another result");
  }
}
