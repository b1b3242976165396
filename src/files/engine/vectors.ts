// Vectors of an index, compared one by one: exact, and fast enough for tens of thousands.

export interface SimilarVector {
  readonly id: number;
  /** Cosine, from -1 to 1. */
  readonly similarity: number;
}

export class Vectors {
  /** Normalized to length 1. */
  readonly #byId = new Map<number, Float32Array>();

  set(id: number, vector: Float32Array): void {
    this.#byId.set(id, toUnitLength(vector));
  }

  delete(id: number): void {
    this.#byId.delete(id);
  }

  clear(): void {
    this.#byId.clear();
  }

  /** Returns the nearest first. Vectors of another length belong to another model and are skipped. */
  nearest(vector: readonly number[], limit: number, isWanted: (id: number) => boolean): SimilarVector[] {
    const wanted = toUnitLength(Float32Array.from(vector));
    const all: SimilarVector[] = [];
    for (const [id, each] of this.#byId)
      if (each.length === wanted.length && isWanted(id)) all.push({ id, similarity: product(each, wanted) });
    return all.sort((a, b) => b.similarity - a.similarity).slice(0, limit);
  }
}

function product(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

function toUnitLength(vector: Float32Array): Float32Array {
  const length = Math.sqrt(product(vector, vector));
  return length === 0 ? vector : vector.map((each) => each / length);
}
