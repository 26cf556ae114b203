// Two modules of WebAssembly that are the same but for names: outer() calls inner(), which loops.
const text = (s) => [s.length, ...Buffer.from(s)];
const section = (id, bytes) => [id, bytes.length, ...bytes];
const INNER = [1, 1, 127, 3, 64, 32, 1, 65, 1, 106, 33, 1, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 1, 11];
const OUTER = [0, 32, 0, 16, 0, 11]; // call 0
const NAMES = [...text("name"), 0, 4, ...text("mod"), 1, 15, 2, 0, ...text("inner"), 1, ...text("outer")];

function made(named) {
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, ...section(1, [1, 96, 1, 127, 1, 127]), ...section(3, [2, 0, 0]),
    ...section(7, [1, ...text("spin"), 0, 1]), ...section(10, [2, INNER.length, ...INNER, OUTER.length, ...OUTER]),
    ...(named ? section(0, NAMES) : [])];
  return new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.spin;
}

const named = made(true), bare = made(false);

function viaNamed() {
  return named(3000000);
}

function viaBare() {
  return bare(3000000);
}

const end = Date.now() + 1000 * (Number(process.argv[2]) || 5);
while (Date.now() < end) {
  viaNamed();
  viaBare();
}
