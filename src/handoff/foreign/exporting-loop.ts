// Exporting until stopped, or until there is nothing to take: each ticket goes to the folder, or is tried again later.
import { isHoldfastError } from "../../errors.ts";
import type { LoopSignals } from "../../part/loop.ts";
import { consume, type ConsumeOptions, type ConsumerParts } from "../consume/consumer.ts";
import type { Exporter } from "./exporter.ts";

/** A receiver that is slow, or a folder that cannot be written to, makes no dead letters. */
const exportOptions: ConsumeOptions = {
  attempts: Number.MAX_SAFE_INTEGER,
  backoffMs: { min: 200, max: 10_000 },
  // Names that cannot be in one folder never can.
  onError: (error) => (isHoldfastError(error, "INVALID_NAME") ? "fail" : "retry"),
};

/** How many tickets were handed over. */
export async function exportUntilStopped(
  exporter: Exporter,
  parts: ConsumerParts,
  signals: LoopSignals,
): Promise<number> {
  let count = 0;
  await exporter.removeLeftovers();
  await consume(
    parts,
    async (delivery) => {
      await exporter.export(delivery);
      count++;
    },
    exportOptions,
    signals,
  );
  await exporter.removeLeftovers();
  return count;
}
