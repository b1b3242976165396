// The folder of a demo, as one process finds it.
import { directoryOf, openGround } from "../../durable/index.ts";
import type { Place } from "./station.ts";

/** Makes the folder if it is not there. `name` is what others see this process under. INVALID_PATH for what names no folder. */
export async function openPlace(location: string, name: string): Promise<Place> {
  // As the library writes it: absolute, with forward slashes on every platform.
  const directory = directoryOf(location);
  const ground = await openGround(`${directory}/ground`, { name });
  return { directory, disk: ground.ports.disk, ground };
}
