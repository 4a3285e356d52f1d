// The outer planets around the sun, moved step by step: numbers in objects.
function run(loops) {
  const bodies = [
    { x: 0, y: 0, z: 0, vx: 0, vy: 0, vz: 0, mass: 39.478 },
    { x: 4.84, y: -1.16, z: -0.1, vx: 0.606, vy: 2.812, vz: -0.025, mass: 0.0377 },
    { x: 8.34, y: 4.12, z: -0.4, vx: -1.011, vy: 1.825, vz: 0.008, mass: 0.0113 },
    { x: 12.89, y: -15.11, z: -0.22, vx: 1.083, vy: 0.868, vz: -0.011, mass: 0.0017 },
    { x: 15.38, y: -25.92, z: 0.18, vx: 0.979, vy: 0.594, vz: -0.035, mass: 0.002 },
  ];
  const step = 0.01;
  for (let round = 0; round < loops * 1000; round++) {
    for (let i = 0; i < bodies.length; i++) {
      const a = bodies[i];
      for (let j = i + 1; j < bodies.length; j++) {
        const b = bodies[j];
        const dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
        const squared = dx * dx + dy * dy + dz * dz;
        const pull = step / (squared * Math.sqrt(squared));
        a.vx -= dx * b.mass * pull; a.vy -= dy * b.mass * pull; a.vz -= dz * b.mass * pull;
        b.vx += dx * a.mass * pull; b.vy += dy * a.mass * pull; b.vz += dz * a.mass * pull;
      }
    }
    for (const body of bodies) {
      body.x += step * body.vx; body.y += step * body.vy; body.z += step * body.vz;
    }
  }
}
