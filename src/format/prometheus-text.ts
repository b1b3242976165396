// The text format of Prometheus, version 0.0.4, which its scrapers and the node exporter read.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Of a histogram: "_bucket", "_sum" or "_count". */
  readonly suffix?: string;
}

export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Ends with a line feed, which the format asks for. Without samples only what stands above them. */
export function metricText(
  type: "counter" | "gauge" | "histogram",
  name: string,
  help: string,
  samples: readonly Sample[],
): string {
  const lines = samples.map(({ labels, value, suffix = "" }) => `${name}${suffix}${labelsText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** In a label, backslash, quote and line feed are escaped. */
function labelsText(labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return texts.length === 0 ? "" : `{${texts.join(",")}}`;
}
