// The report of `doctor` for people: the results in a column, with details only for bad ones.
import type { CheckVerdict, DoctorCheck, DoctorReport, DoctorVerdict } from "../../index.ts";
import { wrap, type Page, type Style } from "../output.ts";

const styleOf: Readonly<Record<CheckVerdict | DoctorVerdict, Style>> = {
  good: "green",
  ok: "green",
  limited: "yellow",
  bad: "red",
  unusable: "red",
};

const conclusionOf: Readonly<Record<DoctorVerdict, string>> = {
  ok: "Holdfast can be used here.",
  limited: "Holdfast can be used here, within the limits above.",
  unusable: "Holdfast must not be used here: writes would be lost.",
};

export function formatReport(report: DoctorReport, page: Page): string {
  const idWidth = Math.max(...report.checks.map(({ id }) => id.length));
  return [
    page.style("bold", report.directory),
    "",
    ...report.checks.map((check) => formatCheck(check, idWidth, page)),
    "",
    `${page.style(styleOf[report.verdict], report.verdict)}: ${conclusionOf[report.verdict]}`,
  ].join("\n");
}

const verdictWidth = "limited".length;
const gap = 2;

function formatCheck(check: DoctorCheck, idWidth: number, { columns, style }: Page): string {
  const { id, verdict, finding, meaning, remedy } = check;
  const indent = verdictWidth + gap + idWidth + gap;
  const fit = (text: string): string => wrap(text, columns, indent);
  const lines = [fit(finding)];
  if (verdict !== "good") lines.push(fit(meaning), ...(remedy === undefined ? [] : [fit(`To do: ${remedy}`)]));
  const head = `${style(styleOf[verdict], verdict.padEnd(verdictWidth))}${" ".repeat(gap)}${id.padEnd(idWidth)}${" ".repeat(gap)}`;
  return head + lines.join(`\n${" ".repeat(indent)}`);
}
