// The console in a real browser: every view with data of real processes, actions, hostile names, and a page that stays
// open while processes and the console itself die and come back.
import type { ChildProcess } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { startConsole, type ConsoleServerOptions, type RunningConsole } from "../../../src/console/index.ts";
import { openStore, type Store } from "../../../src/index.ts";
import { makeSuiteScratch } from "../pages.ts";
import { Browser, startWorkshop } from "./browser.ts";

const directory = makeSuiteScratch();
const html = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const children: ChildProcess[] = [];
let browser: Browser;
let store: Store;
let running: RunningConsole;

async function start(options: ConsoleServerOptions = {}): Promise<RunningConsole> {
  return await startConsole(store, { port: 0, allowActions: true, ...options });
}

beforeAll(async () => {
  children.push(await startWorkshop(directory, "first"));
  children.push(await startWorkshop(directory, "second"));
  store = await openStore(directory, { readOnly: true });
  running = await start();
  browser = await Browser.open();
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await running?.close();
  await store?.close();
  for (const child of children) child.kill("SIGKILL");
});

afterEach(() => {
  expect(browser.complaints.splice(0)).toEqual([]);
});

/** Opens a view of a signed-in page, and waits until it shows `text`. */
async function show(page: Page, view: string, text?: string): Promise<void> {
  if (!page.url().startsWith("http")) await page.goto(running.url);
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  if (text !== undefined) await page.getByText(text, { exact: false }).first().waitFor();
  expect(await page.title()).not.toBe("owned");
}

/** Every view, and a text that only its data has. */
const views: readonly (readonly [view: string, text: string])[] = [
  ["overview", "3 done"],
  ["locks", "aisle-1"],
  ["events?log=main", "sku:B1"],
  ["events?log=main&position=121", "Caused by"],
  ["events?log=main&model=stock", "Documents of"],
  ["handoff?box=labels&state=error", "The printer is out of paper."],
  ["handoff?box=labels&state=archive", "done-3"],
  ["objects?bucket=photos", "cats/"],
  ["objects?bucket=photos&key=cats%2Ftom.txt", "current"],
  ["files", "archive/old.md"],
  ["files?path=notes%2Ftoday.md", "Count the shelves"],
  ["files?text=shelves", "notes/today.md"],
  ["files?session=till%201", "Where are the shelves?"],
  ["activity", "appended"],
];

describe("every view", () => {
  test.each(views)("%s shows data of real processes", async (view, text) => {
    const page = await browser.page();
    if (view === "files?session=till%201") {
      await show(page, view, "Messages that are not archived");
      await page.getByText(html).waitFor();
    } else await show(page, view, text);
    expect(await page.locator("main .trouble").allTextContents()).toEqual([]);
    await page.close();
  });

  test("fits 400 and 2,000 pixels in both themes, with labels, captions and landmarks for a screen reader", async () => {
    for (const [width, theme] of [
      [400, "dark"],
      [2000, "light"],
    ] as const) {
      const page = await browser.page({ width, theme });
      for (const [view, text] of views.filter(([name]) => !name.includes("session"))) {
        await show(page, view, text);
        const found: unknown = await page.evaluate(`({
          wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          mains: document.querySelectorAll("main").length,
          headings: document.querySelectorAll("h1").length,
          unlabelled: [...document.querySelectorAll("input,select,button")].filter((field) =>
            field.labels?.length !== 1 && (field.getAttribute("aria-label") ?? field.textContent).trim() === "").length,
          uncaptioned: [...document.querySelectorAll("table")].filter((table) => table.caption === null).length,
        })`);
        expect([view, width, found]).toEqual([view, width, { wide: 0, mains: 1, headings: 1, unlabelled: 0, uncaptioned: 0 }]); // prettier-ignore
      }
      await page.close();
    }
  });
});

test("hostile names are text everywhere: nothing runs, and what is invisible is shown", async () => {
  const page = await browser.page();
  await show(page, "handoff?box=labels&state=error", "<img src=x");
  for (const code of ["U+202E", "U+0007", "U+001B"]) await page.getByText(code).first().waitFor();
  await show(page, "objects?bucket=photos", "U+0001");
  await show(page, `objects?bucket=photos&key=${encodeURIComponent(html)}`, "current");
  await show(page, `files?path=${encodeURIComponent("odd/<img src=x onerror=alert(1)>.md")}`, html);
  await show(page, "overview", "till <b>2</b>");
  await show(page, "events?log=main&position=121", "<script>");
  expect(await page.evaluate(`document.querySelectorAll("main img, main script, main b").length`)).toBe(0);
  await page.close();
});

test("without the token the page shows nothing of the store, and its cookie is hidden from scripts", async () => {
  await browser.forgetCookies();
  const page = await browser.page();
  await page.goto(new URL(running.url).origin);
  await page.getByRole("heading", { name: "This console is locked" }).waitFor();
  expect(await page.textContent("body")).not.toContain("labels");
  await page.goto(running.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(page.url()).not.toContain("token");
  expect(await page.evaluate("document.cookie")).toBe("");
  await page.close();
});

/** Presses a button, reads the question, and agrees. */
async function agree(page: Page, button: string, consequence: string, verb: string): Promise<void> {
  await page.getByRole("button", { name: button }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(consequence).waitFor();
  await dialog.getByRole("button", { name: verb }).click();
  await dialog.waitFor({ state: "hidden" });
}

describe("an action", () => {
  test("asks first and does nothing when it is cancelled by Escape", async () => {
    const page = await browser.page();
    await show(page, "handoff?box=labels&state=error", "label-1");
    await page.getByRole("button", { name: "Discard all" }).click();
    await page.getByRole("dialog").getByText("removed permanently").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await (await store.handoff("labels")).stats()).toMatchObject({ error: 7 });
    await page.close();
  });

  test("replays a selection, discards one, and replays all that match", async () => {
    const page = await browser.page();
    await show(page, "handoff?box=labels&state=error", "label-1");
    await page.getByRole("checkbox", { name: "Select label-1" }).check();
    await agree(page, "Replay selected (1)", "returns to the queue", "Replay");
    await page.getByText("1 ticket returned to the queue.").waitFor();
    await page.getByRole("link", { name: "label-2" }).click();
    await page.getByRole("term").filter({ hasText: "Last reason" }).waitFor();
    await page.getByText("No template for label-2").first().waitFor();
    await agree(page, "Discard …", "removed permanently", "Discard");
    await page.getByText("1 ticket removed permanently.").waitFor();
    await show(page, "handoff?box=labels&state=error&key=report", "fdp.exe");
    await agree(page, "Replay all that match", "returns to the queue", "Replay 1");
    await page.getByText("1 ticket returned to the queue.").waitFor();
    expect(await (await store.handoff("labels")).stats()).toMatchObject({ error: 4 });
    await page.close();
  });

  test("pauses a box with a reason, and resumes it", async () => {
    const page = await browser.page();
    await show(page, "handoff?box=labels", "Pause …");
    await page.getByRole("button", { name: "Pause …" }).click();
    await page.getByLabel("Reason, for others").fill(`moving ${html}`);
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText(`moving ${html}`).first().waitFor();
    await agree(page, "Resume …", "claim tickets of this box again", "Resume");
    await page.getByRole("button", { name: "Pause …" }).waitFor();
    await page.close();
  });

  test("releases a lock by force, and the process that waits gets it", async () => {
    const page = await browser.page();
    await show(page, "locks", "stock-take");
    await page.getByText("to lock warehouse/aisle-1/shelf-4").waitFor();
    const card = page.locator(".card", { hasText: "stock-take" });
    await card.getByRole("button", { name: "Release" }).click();
    await page.getByRole("dialog").getByText("loses its locks on this path").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Release by force" }).click();
    await page.getByText("1 lock released.").waitFor();
    await page.getByText("shelf-4", { exact: true }).waitFor();
    await card.waitFor({ state: "detached" });
    await page.close();
  });

  test("restores an older version of an object", async () => {
    const page = await browser.page();
    await show(page, "objects?bucket=photos&key=cats%2Ftom.txt", "older");
    await page.getByRole("button", { name: "Restore …" }).last().click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
    await page.getByText("Restored as version").waitFor();
    expect(await (await (await (await store.objects()).bucket("photos")).get("cats/tom.txt")).text()).toBe("first");
    await page.close();
  });

  test("is in the log of the store, with who asked for it", async () => {
    const page = await browser.page();
    await show(page, "events?log=console", "ActionRequested");
    await page.getByText("ActionDone").first().waitFor();
    await page.close();
  });

  test("is not offered by a console that only shows", async () => {
    await using reading = await start({ allowActions: false });
    const page = await browser.page();
    await page.goto(reading.url);
    await page.getByText("read-only", { exact: true }).waitFor();
    for (const view of ["locks", "handoff?box=labels&state=error", "objects?bucket=photos&key=cats%2Ftom.txt"]) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
      const link = `#/${view.split("?")[0] ?? ""}`;
      await page.locator(`header nav a[aria-current][href="${link}"]`).waitFor();
      expect(await page.getByRole("button", { name: /Release|Replay|Discard|Pause|Restore/ }).count()).toBe(0);
    }
    await page.close();
  });
});

test("the keyboard alone opens a view, a ticket, and a question", async () => {
  const page = await browser.page();
  await show(page, "overview", "Processes");
  await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.textContent")).toContain("Skip to the content");
  const focused = (): Promise<string> => page.evaluate<string>("document.activeElement.textContent");
  while (!(await focused()).startsWith("Hand-off")) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Tickets" }).waitFor();
  while (!(await focused()).startsWith("Discard all")) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  expect(await page.evaluate(`document.activeElement.closest("dialog") !== null`)).toBe(true);
  await page.keyboard.press("Escape");
  await page.close();
});

test("Tab begins before the bar on a new page, and in the content after a link in the content", async () => {
  const page = await browser.page();
  await page.goto(running.url);
  await page.getByRole("heading", { name: "Processes" }).waitFor();
  await page.keyboard.press("Tab");
  expect(await page.evaluate("document.activeElement.textContent")).toContain("Skip to the content");
  await page.getByRole("link", { name: / in labels$/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Tickets" }).waitFor();
  await page.waitForFunction(`document.activeElement.id === "main"`);
  await page.close();
});

test("the list of failed tickets stays when the last of them is replayed", async () => {
  const page = await browser.page();
  await show(page, "handoff?box=labels", "Last reason");
  await agree(page, "Replay all …", "returns to the queue", "Replay");
  await page.getByText("No tickets in this state.").waitFor();
  expect(await page.getByRole("link", { name: /^failed/ }).getAttribute("aria-current")).not.toBeNull();
  await page.close();
});

test("a hidden tab closes its stream, and opens it again when it is shown", async () => {
  const page = await browser.page();
  await show(page, "overview", "live");
  const setHidden = async (isHidden: boolean): Promise<void> =>
    await page.evaluate(`
      Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"));
    `);
  const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/stream"));
  await setHidden(true);
  await ended;
  await page.getByText("paused", { exact: true }).waitFor();
  const begun = page.waitForRequest((request) => request.url().endsWith("/api/stream"));
  await setHidden(false);
  await begun;
  await page.getByText("live", { exact: true }).waitFor();
  await page.close();
});

test("a page stays open while processes are killed and come back, and the console itself", async () => {
  const page = await browser.page();
  await show(page, "overview", "till <b>2</b>");
  const processes = page.getByRole("region", { name: "Processes" }).locator("tbody tr");
  const count = await processes.count();
  children.pop()?.kill("SIGKILL");
  await page
    .getByText("dead", { exact: true })
    .or(page.locator(".holder", { hasNotText: "till <b>2" }))
    .first()
    .waitFor();
  children.push(await startWorkshop(directory, "second"));
  await processes.getByText("till <b>2</b>").first().waitFor();
  await processes
    .getByText("alive")
    .nth(count - 1)
    .waitFor();
  const { port } = running;
  await running.close();
  await page.getByText("not connected").waitFor();
  running = await start({ port });
  await page.getByRole("heading", { name: "This console is locked" }).waitFor();
  await page.goto(running.url);
  await page.getByText("live", { exact: true }).waitFor();
  await page.close();
});
