// npm's redlock, as lock.py drives the libraries of Python: see there.

const readline = require("readline");

function main() {
  let Redis, Redlock;
  try {
    Redis = require("ioredis");
    Redlock = require("redlock");
  } catch (error) {
    console.log("missing " + error.code);
    return;
  }
  const [, name, ttl, ...ports] = process.argv.slice(2);
  const servers = ports.map((port) => new Redis(Number(port), "127.0.0.1"));
  const once = new Redlock(servers, { retryCount: 0 });
  const patient = new Redlock(servers, { retryCount: -1 });
  let held;
  const take = async (redlock) => {
    try {
      held = await redlock.lock(name, Number(ttl) * 1000);
      return "True";
    } catch (error) {
      return error instanceof Redlock.LockError ? "False" : String(error);
    }
  };
  const calls = {
    try: () => take(once),
    wait: () => take(patient),
    release: () => held.unlock().then(() => "None"),
  };
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("line", async (line) => console.log(await calls[line]()));
  lines.on("close", () => process.exit());
  console.log("ready");
}

main();
