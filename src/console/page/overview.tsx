// The overview: what needs a person, rates of the last minutes, processes, parts, and checks.
import type { JSX } from "preact";
import { useData } from "./api.ts";
import { ask } from "./dialog.tsx";
import { ago, bytes, count, duration, rate } from "./format.ts";
import type { Box, Holder, Log, Counters, Sample } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import {
  Badge,
  Facts,
  HolderName,
  LifeBadge,
  linkTo,
  Panel,
  plural,
  Sparkline,
  Table,
  Text,
  Time,
  Trouble,
  Waiting,
} from "./parts.tsx";

interface Problem {
  readonly severity: "damage" | "leftover" | "note";
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
}
interface Check<Result> {
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly result?: Result;
  readonly error?: string;
}
interface PartVerdict {
  readonly part: string;
  readonly ok: boolean;
  readonly checked: number;
  readonly problems: readonly Problem[];
}
interface Examination {
  readonly verdict: "ok" | "limited" | "unusable";
  readonly checks: readonly { readonly question: string; readonly verdict: string; readonly finding: string }[];
}
interface Overview {
  readonly location: string;
  readonly id: string;
  readonly version: string;
  readonly buckets?: number;
  readonly sample: Sample;
  readonly verification?: Check<readonly PartVerdict[]>;
  readonly examination?: Check<Examination>;
}

export function OverviewView({ live, allowActions }: ViewProps): JSX.Element {
  const { data, error, reload } = useData<Overview>("overview", {}, live.sample?.at);
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const sample = live.sample ?? data.sample;
  return (
    <>
      <Trouble error={error} />
      <Tiles sample={sample} history={live.history} />
      <Attention sample={sample} />
      <div class="columns">
        <Panel title="Processes" aside={<span class="quiet">{plural(sample.holders.length, "process")}</span>}>
          <Processes holders={sample.holders} />
        </Panel>
        <Panel title="Parts">
          <Parts sample={sample} buckets={data.buckets} />
        </Panel>
      </div>
      <div class="columns">
        <Verification check={data.verification} onStart={reload} />
        <FileSystem check={data.examination} allowActions={allowActions} onDone={reload} />
      </div>
      <Panel title="Store">
        <Facts
          facts={[
            ["Folder", <Text value={data.location} />],
            ["Id", <code>{data.id}</code>],
            ["Version of Holdfast", data.version],
          ]}
        />
      </Panel>
    </>
  );
}

const tiles: readonly { name: keyof Omit<Counters, "atMs">; title: string; unit: string; isLevel?: boolean }[] = [
  { name: "events", title: "Events", unit: "per second" },
  { name: "done", title: "Tickets done", unit: "per second" },
  { name: "changes", title: "File changes", unit: "per second" },
  { name: "locks", title: "Locks held", unit: "now", isLevel: true },
];

function Tiles({ sample, history }: { sample: Sample; history: readonly Counters[] }): JSX.Element {
  return (
    <div class="tiles">
      {tiles.map(({ name, title, unit, isLevel = false }) => {
        const values = isLevel ? history.map((point) => point[name]) : ratesOf(history, name);
        const latest = isLevel ? sample.locks.length : meanOf(values.slice(-5));
        return (
          <div class="tile">
            <h2>{title}</h2>
            <p>
              <strong>{isLevel ? count(latest) : rate(latest)}</strong> <span class="quiet">{unit}</span>
            </p>
            <Sparkline values={values} label={`${title} of the last minutes; now ${rate(latest)} ${unit}`} />
          </div>
        );
      })}
    </div>
  );
}

function ratesOf(history: readonly Counters[], name: keyof Omit<Counters, "atMs">): number[] {
  return history.slice(1).map((point, index) => {
    const before = history[index] ?? point;
    return Math.max(0, (point[name] - before[name]) / Math.max(0.001, (point.atMs - before.atMs) / 1000));
  });
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Lists what needs a person, one line each, with a link to the view that shows it. */
function Attention({ sample }: { sample: Sample }): JSX.Element {
  const lines: JSX.Element[] = [];
  for (const { name, stats } of sample.boxes) {
    if (stats === undefined) continue;
    if (stats.error > 0)
      lines.push(
        <li>
          <Badge tone="bad">failed</Badge>{" "}
          <a href={linkTo("handoff", { box: name, state: "error" })}>
            {plural(stats.error, "ticket")} in <Text value={name} isShort />
          </a>
        </li>,
      );
    if (stats.paused)
      lines.push(
        <li>
          <Badge tone="warn">paused</Badge>{" "}
          <a href={linkTo("handoff", { box: name })}>
            box <Text value={name} isShort />
          </a>
          {stats.pauseReason === undefined ? null : (
            <>
              {" "}
              : <Text value={stats.pauseReason} isShort />
            </>
          )}
        </li>,
      );
    else if ((stats.oldestIncomingMs ?? 0) > 60_000)
      lines.push(
        <li>
          <Badge tone="warn">slow</Badge>{" "}
          <a href={linkTo("handoff", { box: name, state: "incoming" })}>
            the oldest ticket in <Text value={name} isShort /> waits {duration(stats.oldestIncomingMs ?? 0)}
          </a>
        </li>,
      );
  }
  for (const lock of sample.locks)
    for (const { holder, since } of lock.waiting)
      lines.push(
        <li>
          <Badge tone="warn">waits</Badge> <HolderName holder={holder} /> waits{" "}
          {duration(Date.now() - Date.parse(since))} for{" "}
          <a href={linkTo("locks")}>
            <Text value={lock.path === "" ? "the whole tree" : lock.path} isShort />
          </a>
          , held by <HolderName holder={lock.holder} />
        </li>,
      );
  for (const holder of sample.holders)
    if (holder.state !== "alive")
      lines.push(
        <li>
          <LifeBadge state={holder.state} /> <HolderName holder={holder} />, last beat <Time at={holder.lastSeenAt} />
        </li>,
      );
  return (
    <Panel title="Needs attention">
      {lines.length > 0 ? null : sample.boxes.some(isCounting) ? (
        <p class="empty">Still counting …</p>
      ) : (
        <p class="empty">Nothing failed, nothing waits for a lock, every process is alive.</p>
      )}
      {lines.length > 0 ? <ul class="plain attention">{lines.slice(0, 30)}</ul> : null}
      {lines.length > 30 ? <p class="quiet">and {lines.length - 30} more</p> : null}
    </Panel>
  );
}

function Processes({ holders }: { holders: readonly Holder[] }): JSX.Element {
  return (
    <Table
      caption="Processes that have the store open"
      rows={holders}
      keyOf={({ id }) => id}
      empty="No process has this store open."
      columns={[
        { title: "State", cell: ({ state }) => <LifeBadge state={state} /> },
        { title: "Process", kind: "wide", cell: (holder) => <HolderName holder={holder} /> },
        { title: "Since", cell: ({ startedAt }) => <Time at={startedAt} /> },
        { title: "Last beat", cell: ({ lastSeenAt }) => ago(lastSeenAt) },
        { title: "Lease", kind: "number", cell: ({ leaseMs }) => (leaseMs === undefined ? "none" : duration(leaseMs)) },
        { title: "Version", cell: ({ version }) => version },
      ]}
    />
  );
}

/** True until the console has counted the tickets of a large box for the first time. */
function isCounting({ stats, problem }: Box): boolean {
  return stats === undefined && problem === undefined;
}

function Parts({ sample, buckets }: { sample: Sample; buckets: number | undefined }): JSX.Element {
  const logs = sample.logs.map((log: Log) => ({
    key: `log ${log.name}`,
    kind: "log",
    to: linkTo("events", { log: log.name }),
    name: log.name,
    facts:
      log.problem ??
      (log.head === undefined
        ? "counting …"
        : `${plural(log.head, "event")}, ${bytes(log.bytes)}${log.perSecond === undefined ? "" : `, ${rate(log.perSecond)} a second`}`),
  }));
  const boxes = sample.boxes.map(({ name, stats, problem }: Box) => ({
    key: `box ${name}`,
    kind: "box",
    to: linkTo("handoff", { box: name }),
    name,
    facts:
      problem ??
      (stats === undefined
        ? "counting …"
        : `${count(stats.incoming)} waiting, ${count(stats.processing)} in progress, ${count(stats.error)} failed, ${count(stats.archive)} done`),
  }));
  const others = [
    ...(buckets === undefined
      ? []
      : [
          { key: "objects", kind: "objects", to: linkTo("objects"), name: "objects", facts: plural(buckets, "bucket") },
        ]),
    ...(sample.changes === undefined
      ? []
      : [{ key: "files", kind: "files", to: linkTo("files"), name: "files", facts: plural(sample.changes, "change") }]),
  ];
  return (
    <Table
      caption="Parts of the store"
      rows={[...logs, ...boxes, ...others]}
      keyOf={({ key }) => key}
      empty="This store has no parts yet."
      columns={[
        { title: "Kind", cell: ({ kind }) => <span class="quiet">{kind}</span> },
        {
          title: "Name",
          kind: "wide",
          cell: ({ to, name }) => (
            <a href={to}>
              <Text value={name} isShort />
            </a>
          ),
        },
        { title: "Content", cell: ({ facts }) => <Text value={facts} isShort /> },
      ]}
    />
  );
}

function Verification({
  check,
  onStart,
}: {
  check: Check<readonly PartVerdict[]> | undefined;
  onStart: () => void;
}): JSX.Element {
  const isRunning = check !== undefined && check.endedAt === undefined;
  const parts = check?.result ?? [];
  const problems = parts.flatMap(({ part, problems: found }) => found.map((problem) => ({ part, ...problem })));
  const isOk = parts.every(({ ok }) => ok) && check?.error === undefined;
  return (
    <Panel
      title="Last verify"
      aside={
        <button
          type="button"
          disabled={isRunning}
          onClick={() =>
            ask({
              title: "Verify the store",
              subject: "all parts",
              verb: "Verify",
              consequence:
                "It reads every record and every payload, and changes nothing. In a large store that takes a while and keeps the disk busy.",
              requests: [{ action: "verify", body: {} }],
              onDone: onStart,
            })
          }
        >
          {isRunning ? "Running …" : "Verify now"}
        </button>
      }
    >
      {check === undefined ? <p class="empty">Not run since this console was started.</p> : null}
      {check?.endedAt === undefined ? null : (
        <p>
          <Badge tone={isOk ? "good" : "bad"}>{isOk ? "no damage" : "damage"}</Badge>{" "}
          {count(parts.reduce((sum, { checked }) => sum + checked, 0))} records in {plural(parts.length, "part")},{" "}
          <Time at={check.endedAt} />
        </p>
      )}
      <Trouble error={check?.error} />
      {problems.length === 0 ? null : (
        <Table
          caption="Findings of verify"
          rows={problems.slice(0, 50)}
          keyOf={({ part, path, what }) => `${part} ${path} ${what}`}
          empty=""
          columns={[
            {
              title: "Severity",
              cell: ({ severity }) => <Badge tone={severity === "damage" ? "bad" : "quiet"}>{severity}</Badge>,
            },
            { title: "Where", cell: ({ part, path }) => <Text value={`${part}: ${path}`} /> },
            {
              title: "What, and what to do",
              kind: "wide",
              cell: ({ what, remedy }) => <Text value={`${what} ${remedy}`} />,
            },
          ]}
        />
      )}
    </Panel>
  );
}

function FileSystem({
  check,
  allowActions,
  onDone,
}: {
  check: Check<Examination> | undefined;
  allowActions: boolean;
  onDone: () => void;
}): JSX.Element {
  const tone = { ok: "good", limited: "warn", unusable: "bad" } as const;
  const verdict = check?.result?.verdict;
  return (
    <Panel
      title="File system (doctor)"
      aside={
        allowActions ? (
          <button
            type="button"
            onClick={() =>
              ask({
                title: "Examine the file system",
                subject: "the folder of this store",
                verb: "Examine",
                consequence:
                  "It creates a directory of its own in the folder, tests what the file system does, and removes it again.",
                requests: [{ action: "actions/doctor", body: {} }],
                onDone,
              })
            }
          >
            Examine now
          </button>
        ) : undefined
      }
    >
      {check === undefined ? (
        <p class="empty">
          {allowActions
            ? "Not run since this console was started."
            : "The doctor writes to the folder, so a read-only console does not offer it: run holdfast doctor."}
        </p>
      ) : null}
      {verdict === undefined ? null : (
        <p>
          <Badge tone={tone[verdict]}>{verdict}</Badge> <Time at={check?.endedAt} />
        </p>
      )}
      <Trouble error={check?.error} />
      <ul class="plain">
        {check?.result?.checks
          .filter((each) => each.verdict !== "good")
          .map((each) => (
            <li>
              <Badge tone={each.verdict === "bad" ? "bad" : "warn"}>{each.verdict}</Badge> {each.question}{" "}
              {each.finding}
            </li>
          ))}
      </ul>
    </Panel>
  );
}
