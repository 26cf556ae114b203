// An ES module, to be run in a folder with a blank: functions with long and hostile names, and one that calls them.
// check_nodejs_names.py makes LONG and WIDE names of a megabyte.
const end = Date.now() + 1000 * (Number(process.argv[2]) || 5);

const methods = {
  LONG(n) { let x = 0; for (let i = 0; i < n; i++) x += i ^ n; return x; },
  WIDE(n) { let x = 0; for (let i = 0; i < n; i++) x += i ^ n; return x; },
  "semi;colon\nline\ttab\u202eback"(n) { let x = 0; for (let i = 0; i < n; i++) x += i ^ n; return x; },
  "half\ud800pair"(n) { let x = 0; for (let i = 0; i < n; i++) x += i ^ n; return x; },
  plain(n) { let x = 0; for (let i = 0; i < n; i++) x += i ^ n; return x; },
};
const functions = Object.values(methods);

function spin() {
  let x = 0;
  for (const f of functions)
    x += f(300000);
  return x;
}

while (Date.now() < end)
  spin();
