// Opens what a gateway serves: its objects in a folder or in memory, its buckets, its certificate.
import { isHoldfastError, openStore } from "../../../index.ts";
import { fileBody } from "../../../handoff/index.ts";
import { openObjects, type ObjectStore } from "../../../objects/index.ts";
import type { S3GatewayOptions } from "../../../s3/index.ts";
import { isDatabase } from "../location.ts";

export interface OpenedObjects {
  readonly objects: ObjectStore;
  close(): Promise<void>;
}

/**
 * Opens the object store in `directory`, or one in memory without a directory. If the directory is
 * a store, opens its objects. Throws NOT_A_STORE if there is none and `create` is false.
 */
export async function openObjectsOf(
  directory: string | undefined,
  { create }: { readonly create: boolean },
): Promise<OpenedObjects> {
  if (directory !== undefined && isDatabase(directory)) return await openAlone(directory, create);
  try {
    const store = await openStore(directory ?? "memory:", directory === undefined ? {} : { create: false });
    return { objects: await store.objects(), close: () => store.close() };
  } catch (error) {
    if (directory === undefined || !isHoldfastError(error, "NOT_A_STORE")) throw error;
    return await openAlone(directory, create);
  }
}

async function openAlone(directory: string, create: boolean): Promise<OpenedObjects> {
  const objects = await openObjects(directory, { create });
  return { objects, close: () => objects.close() };
}

/** Another gateway that starts at the same time may have created the bucket. */
export async function makeBuckets(objects: ObjectStore, names: readonly string[]): Promise<readonly string[]> {
  for (const name of names)
    await objects.createBucket(name).catch((error: unknown) => {
      if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
    });
  return names;
}

export interface TlsFlags {
  readonly cert?: string;
  readonly key?: string;
}

export async function tlsOf({ cert, key }: TlsFlags): Promise<S3GatewayOptions["tls"]> {
  if (cert === undefined || key === undefined) return undefined;
  return { cert: await read(cert), key: await read(key) };
}

export async function read(path: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of fileBody(path)) pieces.push(piece);
  return Buffer.concat(pieces);
}
