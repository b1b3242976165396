// A server that refuses: its disk is full, statements take too long, connections run out, other transactions stay
// open, and the default isolation is another one.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { describeHistory } from "./audit.ts";
import { connected } from "./standby.ts";

function withOption(url: string, option: string): string {
  const changed = new URL(url);
  changed.searchParams.set("options", `-c ${option}`);
  return changed.href;
}

describeHistory("statements that are ended by statement_timeout", {
  // What a caller asked for was not done in time.
  expected: ["LOCK_TIMEOUT"],
  enough: 100,
  rage: async (world) => {
    world.url = withOption(world.server.url, "statement_timeout=150ms");
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    await connected(world.server.url, async (client) => {
      for (const table of ["hf_log", "hf_chain", "hf_ticket", "hf_done", "hf_key", "hf_version", "hf_object_key"])
        if ((await client.query("select to_regclass($1) as found", [table])).rows[0].found !== null) {
          await client.query(`begin; lock table ${table} in share row exclusive mode`);
          await world.work(1_000);
          await client.query("rollback");
          await world.work(500);
        }
    });
  },
});

describeHistory("a server with fewer connections than its clients want", {
  settings: ["max_connections=14", "superuser_reserved_connections=0"],
  enough: 100,
  rage: async (world) => {
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    await world.work(15_000);
  },
});

describeHistory("transactions of others that stay open", {
  enough: 100,
  rage: async (world) => {
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    await connected(world.server.url, async (client) => {
      // One that only reads keeps what is dead from being vacuumed, and blocks nobody.
      await client.query("begin isolation level repeatable read; select count(*) from hf_event");
      await world.work(15_000);
      await client.query("rollback");
    });
    await connected(world.server.url, async (client) => {
      // One that holds the rows on which appends and locks queue: they wait, and go on.
      await client.query("begin; select * from hf_log for update; select * from hf_chain for update");
      await world.work(8_000);
      await client.query("rollback");
    });
  },
});

for (const isolation of ["repeatable read", "serializable"])
  describeHistory(`a default isolation of ${isolation}`, {
    enough: 100,
    rage: async (world) => {
      world.url = withOption(world.server.url, `default_transaction_isolation=${isolation.replace(" ", "\\ ")}`);
      for (let count = 0; count < 3; count++) world.start();
      await world.ready();
      await world.work(12_000);
    },
  });

// A small file system of its own, for which it takes root.
const disk = mkdtempSync(join(tmpdir(), "holdfast-pg-disk-"));
describe.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("with a small disk", () => {
  describeHistory("a disk of the server that is full, and has room again", {
    directory: () => {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=400m", "tmpfs", disk]);
      mkdirSync(join(disk, "server"));
      return join(disk, "server");
    },
    settings: ["max_wal_size=64MB"],
    expected: ["DISK_FULL"],
    enough: 100,
    rage: async (world) => {
      for (let count = 0; count < 3; count++) world.start();
      await world.ready();
      for (let fill = 0; fill < 3; fill++) {
        await world.work(2_000);
        const end = world.outages.begin();
        const filling = join(disk, "filling");
        try {
          writeFileSync(filling, Buffer.alloc(500 * 1024 * 1024));
        } catch {
          // It is full.
        }
        await world.work(5_000);
        rmSync(filling, { force: true });
        // A server that cannot write its log ends itself.
        if (world.server.hasEnded) await world.server.restart();
        end();
      }
    },
    after: () => {
      execFileSync("umount", [disk]);
      rmSync(disk, { recursive: true });
    },
  });
});
