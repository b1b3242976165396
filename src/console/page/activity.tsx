// The activity: everything that happens in the store in one stream, with a filter.
import type { JSX } from "preact";
import type { Activity } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import { Badge, Filters, linkTo, Panel, Table, Tabs, Text, Time, type Tone } from "./parts.tsx";

const rowsMax = 150;
const kinds = ["process", "lock", "event", "ticket", "file"] as const;
const toneOf: Readonly<Record<string, Tone>> = {
  joined: "good",
  done: "good",
  failed: "bad",
  died: "bad",
  "fell silent": "warn",
  waits: "warn",
  delayed: "warn",
  paused: "warn",
  removed: "warn",
  claimed: "busy",
  acquired: "busy",
};

export function ActivityView({ live, at }: ViewProps): JSX.Element {
  const { kind = "", text = "" } = at;
  const wanted = text.toLowerCase();
  const rows = live.activity.filter(
    (entry) =>
      (kind === "" || entry.kind === kind) &&
      [entry.subject, entry.part, entry.what, entry.by ?? "", entry.detail ?? ""]
        .join(" ")
        .toLowerCase()
        .includes(wanted),
  );
  return (
    <Panel
      title="Latest first"
      aside={
        <Tabs
          label="Kinds"
          tabs={["", ...kinds].map((each) => ({
            title: each === "" ? "all" : `${each}s`.replace("processs", "processes"),
            to: linkTo("activity", { kind: each, text }),
            isOn: each === kind,
          }))}
        />
      }
    >
      <Filters
        fields={[{ name: "text", title: "Has the text", value: text }]}
        onChange={(values) => (location.hash = linkTo("activity", { kind, ...values }))}
      />
      <Table
        caption="Activity"
        rows={collapsed(rows).slice(0, rowsMax)}
        keyOf={(entry) =>
          `${entry.at} ${entry.kind} ${entry.part} ${entry.what} ${entry.subject} ${entry.ref ?? ""} ${entry.by ?? ""}`
        }
        empty="Nothing happened since the console looks. It looks while somebody watches."
        columns={[
          { title: "Time", cell: (entry) => <Time at={entry.at} /> },
          { title: "Kind", cell: (entry) => <span class="quiet">{entry.kind}</span> },
          { title: "In", cell: ({ part }) => (part === "" ? "" : <Text value={part} isShort />) },
          { title: "What", cell: ({ what }) => <Badge tone={toneOf[what] ?? "quiet"}>{what}</Badge> },
          {
            title: "Subject",
            kind: "wide",
            cell: (entry) => (
              <>
                <a href={placeOf(entry)}>
                  <Text value={entry.subject} isShort />
                </a>
                {entry.times > 1 ? <span class="quiet"> × {entry.times}</span> : null}
              </>
            ),
          },
          {
            title: "Detail",
            kind: "wide",
            cell: ({ detail = "" }) => (detail === "" ? "" : <Text value={detail} isShort />),
          },
          { title: "By", cell: ({ by = "" }) => (by === "" ? "" : <Text value={by} isShort />) },
        ]}
      />
    </Panel>
  );
}

/** Merges equal entries in a row into one line with the latest. */
function collapsed(rows: readonly Activity[]): (Activity & { times: number })[] {
  const lines: (Activity & { times: number })[] = [];
  for (const row of rows) {
    const last = lines.at(-1);
    const isSame =
      last && (["kind", "part", "what", "subject", "detail", "by"] as const).every((name) => last[name] === row[name]);
    if (isSame === true) last.times++;
    else lines.push({ ...row, times: 1 });
  }
  return lines;
}

function placeOf({ kind, part, ref, subject, what }: Activity): string {
  if (kind === "event") return linkTo("events", { log: part, position: ref });
  if (kind === "ticket") return linkTo("handoff", { box: part, id: ref });
  if (kind === "file") return what === "removed" ? linkTo("files") : linkTo("files", { path: subject });
  return linkTo(kind === "lock" ? "locks" : "overview");
}
