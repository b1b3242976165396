// The pieces that all views are made of: texts, badges, tables, tabs, filters, sparklines.
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { Parameters } from "./api.ts";
import { ago, bytes, clock, plural } from "./format.ts";
import type { Holder, State } from "./model.ts";
import { piecesOf, plainOf } from "./visible-text.ts";

type Node = ComponentChildren;

/** A text that somebody else wrote: isolated in its direction, with invisible characters shown. */
export function Text({ value, isShort = false }: { value: string; isShort?: boolean }): JSX.Element {
  const pieces = piecesOf(value);
  return (
    <bdi class={isShort ? "text short" : "text"} title={isShort && value.length > 60 ? plainOf(value) : undefined}>
      {value === "" ? <span class="quiet">(empty)</span> : null}
      {pieces.map(({ text, isCode }) => (isCode ? <span class="code">{text}</span> : text))}
    </bdi>
  );
}

export function Time({ at }: { at: string | undefined }): JSX.Element | null {
  if (at === undefined) return null;
  return (
    <time dateTime={at} title={`${at} (${ago(at)})`}>
      {clock(at)}
    </time>
  );
}

export type Tone = "good" | "busy" | "warn" | "bad" | "quiet";
const shapeOf: Readonly<Record<Tone, string>> = { good: "✓", busy: "▸", warn: "◆", bad: "✕", quiet: "○" };

/** A badge. Its shape and words repeat what its colour says. */
export function Badge({ tone, children }: { tone: Tone; children: Node }): JSX.Element {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{shapeOf[tone]}</span> {children}
    </span>
  );
}

export const stateWords: Readonly<Record<State, { word: string; tone: Tone }>> = {
  incoming: { word: "waiting", tone: "quiet" },
  delayed: { word: "delayed", tone: "warn" },
  processing: { word: "in progress", tone: "busy" },
  archive: { word: "done", tone: "good" },
  error: { word: "failed", tone: "bad" },
};

export function StateBadge({ state }: { state: State }): JSX.Element {
  const { word, tone } = stateWords[state];
  return <Badge tone={tone}>{word}</Badge>;
}

export function LifeBadge({ state }: Pick<Holder, "state">): JSX.Element {
  const tone = ({ alive: "good", silent: "warn", dead: "bad" } as const)[state];
  return <Badge tone={tone}>{state}</Badge>;
}

export function HolderName({ holder }: { holder: Pick<Holder, "host" | "pid"> & { name?: string } }): JSX.Element {
  const { name, host, pid } = holder;
  return (
    <span class="holder">
      {name === undefined || name === "" ? null : <Text value={name} />}{" "}
      <span class="quiet">
        pid {pid} on <Text value={host} />
      </span>
    </span>
  );
}

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Node;
  readonly kind?: "number" | "wide" | "check" | "act";
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  readonly empty: string;
  readonly isCurrent?: (row: Row) => boolean;
}

/** On a narrow screen each row becomes a block, with the titles beside the values. */
export function Table<Row>({ caption, columns, rows, keyOf, empty, isCurrent }: TableProps<Row>): JSX.Element {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <table>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, kind }) => (
            <th scope="col" class={kind}>
              {kind === "check" || kind === "act" ? <span class="unseen">{title}</span> : title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} class={isCurrent?.(row) === true ? "current" : undefined}>
            {columns.map(({ title, kind, cell }) => (
              <td class={kind} data-title={kind === "check" || kind === "act" ? undefined : title}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The address of a view, for links: everything that a person sees has an address. */
export function linkTo(view: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  const text = query.toString();
  return `#/${view}${text === "" ? "" : `?${text}`}`;
}

export function Tabs({
  label,
  tabs,
}: {
  label: string;
  tabs: readonly { title: Node; to: string; isOn: boolean }[];
}): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ title, to, isOn }) => (
        <a href={to} aria-current={isOn ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

export function Panel({ title, aside, children }: { title: Node; aside?: Node; children: Node }): JSX.Element {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [title: string, value: Node])[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([title, value]) => (
          <div>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Json({ value, label }: { value: unknown; label: string }): JSX.Element {
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  return (
    // It scrolls, so it must be reachable by keyboard.
    <pre class="json" tabIndex={0} aria-label={label}>
      {text.split("\n").map((line) => (
        <>
          {piecesOf(line).map((piece) => (piece.isCode ? <span class="code">{piece.text}</span> : piece.text))}
          {"\n"}
        </>
      ))}
    </pre>
  );
}

export function Trouble({ error }: { error: string | undefined }): JSX.Element | null {
  if (error === undefined) return null;
  return (
    <p class="trouble" role="alert">
      <span aria-hidden="true">✕</span> <Text value={error} />
    </p>
  );
}

export function Waiting(): JSX.Element {
  return (
    <p class="empty" role="status">
      Loading …
    </p>
  );
}

interface Field {
  readonly name: string;
  readonly title: string;
  readonly value: string;
  readonly hint?: string;
  readonly kind?: "search" | "datetime-local" | "number";
}

/** Filters, kept in the address: a filtered view can be shared, and the back button works. */
export function Filters({
  fields,
  onChange,
  verb = "Filter",
}: {
  fields: readonly Field[];
  onChange: (values: Record<string, string>) => void;
  verb?: string;
}): JSX.Element {
  const id = useId();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    onChange(
      Object.fromEntries([...form].map(([name, value]) => [name, typeof value === "string" ? value.trim() : ""])),
    );
  };
  return (
    <form class="filters" role="search" onSubmit={submit}>
      {fields.map(({ name, title, value, hint, kind = "search" }) => (
        <label for={`${id}${name}`}>
          <span>{title}</span>
          {/* A new value in the address replaces what was typed. */}
          <input
            key={value}
            id={`${id}${name}`}
            name={name}
            type={kind as "search"}
            defaultValue={value}
            placeholder={hint}
            step="any"
          />
        </label>
      ))}
      <button type="submit">{verb}</button>
    </form>
  );
}

/** Pages in one direction, and back to the first. */
export function Pager({
  next,
  isFirst,
  onNext,
  onFirst,
}: {
  next: boolean;
  isFirst: boolean;
  onNext: () => void;
  onFirst: () => void;
}): JSX.Element | null {
  if (!next && isFirst) return null;
  return (
    <p class="pager">
      <button type="button" disabled={isFirst} onClick={onFirst}>
        First page
      </button>
      <button type="button" disabled={!next} onClick={onNext}>
        Next page
      </button>
    </p>
  );
}

const [width, height] = [120, 28];

/** A line chart. A chart library would be larger than the rest of the page. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }): JSX.Element {
  const max = Math.max(...values, 1e-9);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)},${(height - 2 - (value / max) * (height - 4)).toFixed(1)}`,
  );
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 ? <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} /> : null}
      {points.length > 1 ? <polyline points={points.join(" ")} vector-effect="non-scaling-stroke" /> : null}
    </svg>
  );
}

export function Files({
  files,
  hrefOf,
}: {
  files: readonly { name: string; size: number }[];
  hrefOf: (name: string) => string;
}): JSX.Element {
  return (
    <ul class="plain">
      {files.map(({ name, size }) => (
        <li>
          <a href={hrefOf(name)} download>
            <Text value={name} />
          </a>{" "}
          <span class="quiet">{bytes(size)}</span>
        </li>
      ))}
    </ul>
  );
}

/** The selected ids. The selection is emptied when another page is shown. */
export function useSelection(page: string): [ReadonlySet<string>, (ids: Iterable<string>) => void] {
  const [selected, set] = useState<{ page: string; ids: ReadonlySet<string> }>({ page, ids: new Set() });
  return [selected.page === page ? selected.ids : new Set(), (ids) => set({ page, ids: new Set(ids) })];
}

export { plural };
