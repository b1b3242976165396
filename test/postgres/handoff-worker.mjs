// A process of handoff-kills.deep.ts: publishes until it is told to stop, or consumes and sends on.
// It says what it tries before it tries, and what was acknowledged after that.
import { once } from "node:events";

const [library, url, role, name] = process.argv.slice(2);
const { openHandoff } = await import(library);
const say = (...words) => process.stdout.write(`${words.join(" ")}\n`);
let isStopped = false;
process.stdin.on("data", () => (isStopped = true)).on("end", () => (isStopped = true));

/** The server may be away while it opens. */
async function open(box) {
  for (;;)
    try {
      return await openHandoff(`${url}#handoff/${box}`, { leaseMs: 2_000 });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

const [box, other] = [await open("box"), await open("other")];
say("ready");
if (role === "producer") {
  const publishAll = async (caller) => {
    for (let number = 1; !isStopped; number++) {
      const n = `${name}/${caller}/${number}`;
      const options = { ...(number % 2 === 0 && { key: n }), ...(caller === 0 && { group: name }) };
      say("try", n);
      // A file of its own now and then.
      const files = { n, ...(number % 20 === 0 && { large: "x".repeat(100_000) }) };
      await box.publish(files, options).then(
        () => say("ok", n),
        // A session may end while the server is away: then the program publishes again.
        (error) => error.code === "LOCK_LOST" || say("failed", n, error.code),
      );
    }
  };
  await Promise.all([0, 1, 2].map(publishAll));
} else {
  const consumer = box.consume(
    async (delivery) => {
      const n = await delivery.text("n");
      await delivery.output("copy", n);
      await delivery.send(other, { n });
      return n;
    },
    { concurrency: 4, attempts: 1_000, backoffMs: { min: 1, max: 20 } },
  );
  consumer.done.catch((error) => say("ended", error.code, error.message));
  if (!isStopped) await once(process.stdin, "end");
  await consumer.stop();
}
await box.close();
await other.close();
process.exit(0);
