// Runs the demo and writes public/demo.svg: its output as it came, in the reader's time. Needs `npm run build:package`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const command = ["holdfast", "demo", "--dir", "shop", "--seconds", "12"];
const columns = 96;
const rows = 22;
const charWidth = 7.8;
const lineHeight = 19;
const padding = 16;
const barHeight = 30;
/** The audits are printed at once: each stays for this long. */
const auditMs = 1500;
const endMs = 4000;
/** A pause of the run is shown for at most this long. */
const idleMs = 1200;

const cwd = mkdtempSync(join(tmpdir(), "holdfast-recording-"));
const demo = spawn(process.execPath, [join(import.meta.dirname, "../dist/cli/bin.cjs"), ...command.slice(1)], {
  cwd,
  stdio: ["ignore", "pipe", "pipe"],
});
const began = performance.now();
const printed = [];
for (const stream of [demo.stdout, demo.stderr])
  createInterface({ input: stream }).on("line", (text) => printed.push({ text, ms: performance.now() - began }));
const [code] = await once(demo, "close");
rmSync(cwd, { recursive: true, force: true });
if (code !== 0) throw new Error(`The demo ended with ${code}:\n${printed.map(({ text }) => text).join("\n")}`);

const isHeading = (text) => text.startsWith("The audit");
const isVerdict = (text) => text.startsWith("Nothing was lost");

/** The time at which each line is shown: as it came, except for long pauses and for the audits. */
function timesOf(lines) {
  let shown = 0;
  return lines.map(({ text, ms }, index) => {
    const waited = Math.min(ms - (lines[index - 1]?.ms ?? 0), idleMs);
    return (shown += isHeading(text) || isVerdict(text) ? auditMs : waited);
  });
}

function wrapped(text) {
  const found = [];
  let rest = text;
  while (rest.length > columns) {
    const end = Math.max(rest.lastIndexOf(" ", columns), 1);
    found.push(rest.slice(0, end));
    rest = `  ${rest.slice(end).trimStart()}`;
  }
  return [...found, rest];
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const styleOf = (text) => (isVerdict(text) ? "v" : isHeading(text) ? "h" : /^ *\d+ s /.test(text) ? "n" : "");

const times = timesOf(printed);
const lastMs = times.at(-1) + endMs;
const screen = [{ text: `$ ${command.join(" ")}`, style: "h", ms: 0 }];
for (const [index, { text }] of printed.entries())
  for (const part of wrapped(text)) screen.push({ text: part, style: styleOf(text), ms: times[index] });

/** How many lines are shown, each time that this changes. */
const steps = [];
for (const [index, { ms }] of screen.entries()) {
  if (steps.length > 0 && ms - steps.at(-1).ms < 60) steps.at(-1).lines = index + 1;
  else steps.push({ ms, lines: index + 1 });
}

const scrollOf = (lines) => -Math.max(0, lines - rows) * lineHeight;
const keyframes = (name, valueOf) =>
  `@keyframes ${name}{${steps
    .map(({ ms, lines }) => `${((ms / lastMs) * 100).toFixed(2)}%{transform:translateY(${valueOf(lines)}px)}`)
    .join("")}100%{transform:translateY(${valueOf(screen.length)}px)}}`;

const width = Math.round(columns * charWidth + 2 * padding);
const viewHeight = rows * lineHeight;
const height = barHeight + viewHeight + padding;
const seconds = (lastMs / 1000).toFixed(1);
const texts = screen.map(({ text, style }, index) =>
  text.trim() === ""
    ? ""
    : `<text y="${index * lineHeight + 14}"${style === "" ? "" : ` class="${style}"`}>${escaped(text)}</text>\n`,
);

// The cover hides the lines that are not printed yet. Without motion the end is shown.
const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A run of the demo: ${escaped(printed.at(-1).text)}</title>
<style>
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;white-space:pre;fill:#c9ccd6}
.h{fill:#fff;font-weight:600}.n{fill:#8fb8ff}.v{fill:#7fe0a5;font-weight:600}
.scroll{transform:translateY(${scrollOf(screen.length)}px);animation:scroll ${seconds}s step-end 2 both}
.cover{transform:translateY(${screen.length * lineHeight}px);animation:cover ${seconds}s step-end 2 both}
${keyframes("scroll", scrollOf)}
${keyframes("cover", (lines) => lines * lineHeight)}
@media (prefers-reduced-motion:reduce){.scroll,.cover{animation:none}}
</style>
<clipPath id="view"><rect width="${width}" height="${viewHeight}"/></clipPath>
<rect width="${width}" height="${height}" rx="10" fill="#1c1e26"/>
<g fill="#4b4f5e"><circle cx="20" cy="15" r="5"/><circle cx="37" cy="15" r="5"/><circle cx="54" cy="15" r="5"/></g>
<g transform="translate(${padding} ${barHeight})" clip-path="url(#view)"><g class="scroll">
${texts.join("")}<rect class="cover" width="${width}" height="${(screen.length + rows) * lineHeight}" fill="#1c1e26"/>
</g></g>
</svg>
`;
writeFileSync(join(import.meta.dirname, "public/demo.svg"), svg);
console.log(`public/demo.svg: ${seconds} s, ${screen.length} lines, ${svg.length} bytes`);
