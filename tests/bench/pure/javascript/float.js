// Points made, put on the sphere and compared: methods, small objects and functions of `Math`.
function run(loops) {
  class Point {
    constructor(i) {
      this.x = Math.sin(i);
      this.y = Math.cos(i) * 3;
      this.z = (this.x * this.x) / 2;
    }
    normalize() {
      const norm = Math.sqrt(this.x * this.x + this.y * this.y + this.z * this.z);
      this.x /= norm; this.y /= norm; this.z /= norm;
    }
    larger(other) {
      this.x = Math.max(this.x, other.x);
      this.y = Math.max(this.y, other.y);
      this.z = Math.max(this.z, other.z);
      return this;
    }
  }
  for (let round = 0; round < loops; round++) {
    const points = Array.from({ length: 5000 }, (_, i) => new Point(i));
    for (const point of points) point.normalize();
    if (points.reduce((most, point) => most.larger(point)).y > 1) throw new Error("another result");
  }
}
