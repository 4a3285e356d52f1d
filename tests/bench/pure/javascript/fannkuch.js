// The longest chain of reversals over all orders of eight numbers: small arrays of integers.
function run(loops) {
  function flips(order) {
    const held = order.slice();
    let count = 0;
    while (held[0] !== 0) {
      for (let low = 0, high = held[0]; low < high; low++, high--) {
        const kept = held[low];
        held[low] = held[high];
        held[high] = kept;
      }
      count++;
    }
    return count;
  }
  function longest(order, from) {
    if (from === order.length) return flips(order);
    let most = 0;
    for (let at = from; at < order.length; at++) {
      const kept = order[from];
      order[from] = order[at];
      order[at] = kept;
      most = Math.max(most, longest(order, from + 1));
      order[at] = order[from];
      order[from] = kept;
    }
    return most;
  }
  for (let round = 0; round < loops; round++) {
    if (longest([0, 1, 2, 3, 4, 5, 6, 7], 0) !== 22) throw new Error("another result");
  }
}
