// The page of the console: its frame, and the view that the address names.
import { render, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ActivityView } from "./activity.tsx";
import { useData } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { EventsView } from "./events.tsx";
import { FilesView } from "./files.tsx";
import { HandoffView } from "./handoff.tsx";
import { startLive, useLive, type LiveState } from "./live.ts";
import { LocksView } from "./locks.tsx";
import { ObjectsView } from "./objects.tsx";
import { OverviewView } from "./overview.tsx";
import { linkTo, Trouble } from "./parts.tsx";

export interface ViewProps {
  readonly live: LiveState;
  /** The parameters of the address. */
  readonly at: Readonly<Record<string, string>>;
  readonly allowActions: boolean;
}

const views: Readonly<Record<string, { readonly title: string; readonly View: (props: ViewProps) => JSX.Element }>> = {
  overview: { title: "Overview", View: OverviewView },
  locks: { title: "Locks", View: LocksView },
  events: { title: "Events", View: EventsView },
  handoff: { title: "Hand-off", View: HandoffView },
  objects: { title: "Objects", View: ObjectsView },
  files: { title: "Files", View: FilesView },
  activity: { title: "Activity", View: ActivityView },
};

interface Address {
  readonly view: string;
  readonly at: Readonly<Record<string, string>>;
}

function readAddress(): Address {
  const [view = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: Object.hasOwn(views, view) ? view : "overview", at: Object.fromEntries(new URLSearchParams(query)) };
}

function useAddress(): Address {
  const [address, set] = useState(readAddress);
  useEffect(() => {
    const onChange = (): void => set(readAddress());
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return address;
}

function App(): JSX.Element {
  const { view, at } = useAddress();
  const live = useLive();
  const { data: me, error } = useData<{ user: string; allowActions: boolean }>("me", {}, live.state === "strange");
  const main = useRef<HTMLElement>(null);
  const { title, View } = views[view] ?? { title: "Overview", View: OverviewView };
  useEffect(() => {
    document.title = `${title} – Holdfast`;
  }, [title]);
  const nav = useRef<HTMLElement>(null);
  // In a narrow window the bar scrolls sideways: the name of the view must be seen. `scrollIntoView` would also make the
  // Tab key start there, behind the link that skips the bar.
  useEffect(() => {
    const current = nav.current?.querySelector("[aria-current]");
    if (nav.current !== null && current) nav.current.scrollLeft += centreOf(current) - centreOf(nav.current);
  }, [view, me !== undefined]);
  // A link in the content disappears with its view: Tab goes on in the next one, not at the top of the page.
  const place = `${view} ${at["id"] ?? ""}`;
  const shown = useRef(place);
  useEffect(() => {
    if (shown.current !== place && document.activeElement === document.body) main.current?.focus();
    shown.current = place;
  }, [place]);
  if ((error !== undefined && me === undefined) || live.state === "strange")
    return <Locked error={error ?? "The console was started anew, with another token."} />;
  const allowActions = me?.allowActions === true;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <span class="brand">
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <rect width="16" height="16" rx="4" />
            <path d="M5 3v10M11 3v10M5 8h6" />
          </svg>
          Holdfast
        </span>
        <nav aria-label="Views" ref={nav}>
          {Object.entries(views).map(([name, { title: text }]) => (
            <a href={linkTo(name)} aria-current={name === view ? "page" : undefined}>
              {text}
              <Mark name={name} live={live} />
            </a>
          ))}
        </nav>
        <div class="side">
          <span class={`link ${live.state}`} role="status">
            {
              { open: "live", connecting: "connecting", lost: "not connected", hidden: "paused", strange: "" }[
                live.state
              ]
            }
          </span>
          <span class="quiet">{me === undefined ? "" : allowActions ? "actions allowed" : "read-only"}</span>
          <ThemeSwitch />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <h1>{title}</h1>
        {live.state === "lost" ? (
          <Trouble error="The connection to the console is lost. What you see may be out of date; the page tries again." />
        ) : null}
        {live.sample?.problems.map((problem) => (
          <Trouble error={problem} />
        ))}
        <View live={live} at={at} allowActions={allowActions} />
      </main>
      <Dialog />
    </>
  );
}

function centreOf(element: Element): number {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
}

/** Shows how many things in a view need a person. */
function Mark({ name, live }: { name: string; live: LiveState }): JSX.Element | null {
  const { boxes = [], locks = [] } = live.sample ?? {};
  const failed = boxes.reduce((sum, { stats }) => sum + (stats?.error ?? 0), 0);
  const waiting = locks.reduce((sum, lock) => sum + lock.waiting.length, 0);
  const [number, what] = name === "handoff" ? [failed, "failed"] : name === "locks" ? [waiting, "waiting"] : [0, ""];
  if (number === 0) return null;
  return (
    <span class={`mark ${name === "handoff" ? "bad" : "warn"}`} title={`${number} ${what}`}>
      {number}
      <span class="unseen"> {what}</span>
    </span>
  );
}

const themes = ["auto", "light", "dark"] as const;

function ThemeSwitch(): JSX.Element {
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  return (
    <label class="theme">
      <span class="unseen">Theme</span>
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
        {themes.map((name) => (
          <option value={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Locked({ error }: { error: string }): JSX.Element {
  return (
    <main class="locked">
      <h1>This console is locked</h1>
      <Trouble error={error} />
      <p>
        Open the address that <code>holdfast console</code> printed when it started. It ends in <code>?token=…</code>.
      </p>
      <p>
        <a href="./">Try again</a>
      </p>
    </main>
  );
}

startLive();
const root = document.getElementById("console");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
