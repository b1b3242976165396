// Backups under load, a few rounds. HOLDFAST_BACKUP_ROUNDS=50 runs more.
import { expect, test } from "vitest";
import { runAndJudge } from "./rounds.ts";

const rounds = Number(process.env["HOLDFAST_BACKUP_ROUNDS"] ?? 1);

test(
  "every backup has what eight processes, some of them killed, had acknowledged before, and nothing twice",
  { timeout: 60_000 + rounds * 120_000 },
  async () => {
    const { kills, judged, events } = await runAndJudge({ rounds, seed: Number(process.env["HOLDFAST_SEED"] ?? 1) });
    console.log(`${rounds} rounds, ${kills} kills, ${judged} acknowledged writes, ${events} events in the last copy`);
    expect(kills).toBeGreaterThan(0);
    expect(judged).toBeGreaterThan(rounds * 20);
  },
);
