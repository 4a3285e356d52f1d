// The norm of a matrix that is computed and never stored: calls and arithmetic in typed arrays.
function run(loops) {
  const size = 40;
  const entry = (i, j) => 1 / (((i + j) * (i + j + 1)) / 2 + i + 1);
  function times(from, to, turned) {
    for (let i = 0; i < size; i++) {
      let sum = 0;
      for (let j = 0; j < size; j++) sum += (turned ? entry(j, i) : entry(i, j)) * from[j];
      to[i] = sum;
    }
  }
  for (let round = 0; round < loops; round++) {
    const u = new Float64Array(size).fill(1), v = new Float64Array(size), w = new Float64Array(size);
    for (let i = 0; i < 10; i++) {
      times(u, w, false); times(w, v, true);
      times(v, w, false); times(w, u, true);
    }
    let over = 0, under = 0;
    for (let i = 0; i < size; i++) { over += u[i] * v[i]; under += v[i] * v[i]; }
    if (Math.abs(Math.sqrt(over / under) - 1.2742) > 0.001) throw new Error("another result");
  }
}
