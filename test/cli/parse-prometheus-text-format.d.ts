// The types of a package that has none: the text format of Prometheus, parsed.
declare module "parse-prometheus-text-format" {
  interface Metric {
    readonly value: string;
    readonly labels?: Readonly<Record<string, string>>;
  }
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Metric[];
  }
  export default function parse(text: string): readonly Family[];
}
