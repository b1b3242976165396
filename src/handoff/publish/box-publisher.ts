// Publishes within the limits of a box, and wakes this process's consumers.
import type { Box } from "../box/box.ts";
import type { Arrivals } from "../deliver/arrivals.ts";
import type { Publication, Published } from "../model/publication.ts";
import { Backlog, type BacklogLimits } from "./backlog.ts";
import { countedBox } from "./box-count.ts";
import { publish } from "./publisher.ts";

export class BoxPublisher {
  readonly box: Box;
  readonly #arrivals: Arrivals;
  readonly #backlog: Backlog;

  constructor(box: Box, arrivals: Arrivals, limits?: BacklogLimits) {
    this.box = box;
    this.#arrivals = arrivals;
    this.#backlog = new Backlog(countedBox(box), limits);
  }

  /** Throws RESOURCE_BUSY if the box is full, TOO_LARGE for a payload that would not fit into an empty box. */
  async publish(publication: Publication): Promise<Published> {
    const published = await this.#backlog.during((admit) => publish(this.box, { ...publication, admit }));
    this.#arrivals.wakeAll();
    return published;
  }

  /** Throws RESOURCE_BUSY if the box is full now. */
  async mustHaveRoom(): Promise<void> {
    await this.#backlog.mustHaveRoom();
  }
}
