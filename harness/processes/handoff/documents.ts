// The documents of the hand-off process tests, and what the workers must do with each.

/** The `meta` of a ticket, which describes its document. */
export interface Document {
  readonly key: string;
  /** True if the text is stored beside the ticket. */
  readonly isLarge: boolean;
  readonly group?: string;
  /** The key of the previous document in its group. */
  readonly before?: string;
  /** True if it kills each worker that opens it. */
  readonly isPoison: boolean;
  /** True if its handler throws the first time. */
  readonly isRetried: boolean;
  readonly outputs: readonly string[];
  /** True if its handler sends a ticket to the next box. */
  readonly isSent: boolean;
}

export interface DocumentPlan {
  /** The number of publications, including those that repeat a key. */
  readonly tickets: number;
  readonly producers: number;
  /** The fraction of publications that repeat the key of another one. */
  readonly duplicates: number;
  readonly poisons: number;
}

/** More than a ticket holds. */
const largeBytes = 70_000;
const groupsPerProducer = 2;

export function textOf({ key, isLarge }: Document): string {
  return `the text of ${key}`.padEnd(isLarge ? largeBytes : 0, ".");
}

/** The documents that producer number `producer`, from 0, publishes, in this order. */
export function publicationsOf(plan: DocumentPlan, producer: number): Document[] {
  const own = documentsOf(plan, producer);
  const neighbours = documentsOf(plan, (producer + 1) % plan.producers).filter(isRepeatable);
  const all: Document[] = [];
  const repeatEvery = plan.duplicates === 0 ? Infinity : Math.round(1 / plan.duplicates) - 1;
  for (const [index, document] of own.entries()) {
    all.push(document);
    // Takes roughly the neighbour's current document, so that both publish it at about the same time.
    const repeated = neighbours[Math.floor((index / own.length) * neighbours.length)];
    if ((index + 1) % repeatEvery === 0 && repeated !== undefined) all.push(repeated);
  }
  return all;
}

/** Returns every document once. */
export function allDocuments(plan: DocumentPlan): Document[] {
  return Array.from({ length: plan.producers }, (_, producer) => documentsOf(plan, producer)).flat();
}

/** Documents of a group are not repeated: another producer would publish them before their turn. */
function isRepeatable({ group, isPoison }: Document): boolean {
  return group === undefined && !isPoison;
}

function documentsOf({ tickets, producers, duplicates, poisons }: DocumentPlan, producer: number): Document[] {
  const count = Math.round((tickets * (1 - duplicates)) / producers);
  const last = new Map<string, string>();
  return Array.from({ length: count }, (_, index) => {
    const key = `document ${producer}/${index}`;
    const group = index % 4 === 0 ? `group ${producer}/${(index / 4) % groupsPerProducer}` : undefined;
    const before = group === undefined ? undefined : last.get(group);
    if (group !== undefined) last.set(group, key);
    const isPoison = producer === 0 && poisonedIndexes(poisons).includes(index);
    return {
      key,
      isLarge: index % 10 === 3,
      ...(group === undefined ? {} : { group }),
      ...(before === undefined ? {} : { before }),
      isPoison,
      // Retries one document of a group, which returns to its place, and one that waits until it is due.
      isRetried: !isPoison && [8, 9].includes(index % 20),
      outputs: index % 3 === 0 ? ["receipt.txt", "copy.txt"] : [],
      isSent: index % 5 === 1,
    };
  });
}

/** The first poisoned document and every second one after it are in a group. */
function poisonedIndexes(count: number): number[] {
  return Array.from({ length: count }, (_, number) => 20 + 20 * Math.floor(number / 2) + 5 * (number % 2));
}
