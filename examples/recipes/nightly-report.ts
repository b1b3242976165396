// A nightly job closes the day and reports on it. The report must contain what the job itself has just written.
import { openEvents, openProjection, type NewEvent } from "holdfast/events";
import { publishFile } from "holdfast/handoff";

type Sold = NewEvent<"Sold", { day: string; cents: number }>;
type Closed = NewEvent<"Closed", { day: string; cash: number }>;

const folder = process.argv[2] ?? "shared/ledger";
const day = process.argv[3] ?? "2026-11-19";
const ledger = await openEvents<Sold | Closed>(folder);
const days = await openProjection(ledger, {
  name: "days",
  query: { types: ["Sold", "Closed"] },
  key: ({ data }) => data.day,
  apply: (state: { sales: number; cents: number; missing?: number } | undefined, { type, data }) => {
    const { sales, cents } = state ?? { sales: 0, cents: 0 };
    if (type === "Sold") return { sales: sales + 1, cents: cents + data.cents };
    return { sales, cents, missing: cents - data.cash };
  },
});
const running = days.run(); // the tills run it, too: one process at a time does the work
running.done.catch((error: unknown) => console.error(error));

// The tills, during the day.
for (const cents of [1990, 2490, 990]) await ledger.append({ type: "Sold", data: { day, cents } });

// The job. The id makes it the same event, however often the job runs.
const { last } = await ledger.append({ type: "Closed", id: `closed/${day}`, data: { day, cash: 5400 } });
await days.waitUntilProcessed(last); // reads what was written: this event, and all before it

const { sales, cents, missing } = (await days.get(day)) ?? { sales: 0, cents: 0 };
const report = `${day}: ${sales} sales, ${cents / 100} in the ledger, ${(missing ?? 0) / 100} missing in the till\n`;
await publishFile(`${folder}/report-${day}.txt`, report, { replace: true }); // readers see it whole
process.stdout.write(report);

await running.stop();
await ledger.close();
