// Requests of the page: loads the data of a view, and runs actions.
import { useEffect, useRef, useState } from "preact/hooks";

export type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

export class RefusedRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns the address of a route. Omits parameters that are undefined, false or empty. */
export function addressOf(route: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== false && value !== "") query.set(name, String(value));
  const text = query.toString();
  return `api/${route}${text === "" ? "" : `?${text}`}`;
}

async function send<T>(address: string, init: RequestInit = {}): Promise<T> {
  const answer = await fetch(address, init).catch(() => {
    throw new RefusedRequest(0, "The console does not answer. Is it still running?");
  });
  const body = (await answer.json().catch(() => ({}))) as { error?: { message: string } } & T;
  if (answer.ok) return body;
  throw new RefusedRequest(answer.status, body.error?.message ?? `The console answered ${answer.status}.`);
}

export async function get<T>(route: string, parameters?: Parameters): Promise<T> {
  return await send<T>(addressOf(route, parameters));
}

export async function post(name: string, body: object): Promise<string> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await send<{ result: string }>(`api/${name}`, init)).result;
}

export interface Loaded<T> {
  readonly data?: T;
  readonly error?: string;
  readonly reload: () => void;
}

/**
 * Loads the data of a view, and again when its address or `revision` changes. Meanwhile it keeps
 * the data of the same address, so that nothing flickers. It drops a late answer to an older
 * request.
 */
export function useData<T>(route: string | undefined, parameters: Parameters = {}, revision: unknown = 0): Loaded<T> {
  const address = route === undefined ? undefined : addressOf(route, parameters);
  const [loaded, setLoaded] = useState<{ address?: string; data?: T; error?: string }>({});
  const [turn, setTurn] = useState(0);
  const wanted = useRef<string | undefined>(undefined);
  const request = useRef<{ address: string; isAgain: boolean } | undefined>(undefined);
  wanted.current = address;
  useEffect(() => {
    if (address === undefined) return;
    // A store that changes faster than it answers must not keep the page from showing an answer.
    if (request.current?.address === address) return void (request.current.isAgain = true);
    const own = { address, isAgain: false };
    request.current = own;
    const settle = (result: { data?: T; error?: string }): void => {
      if (request.current === own) request.current = undefined;
      if (wanted.current !== address) return;
      setLoaded((before) => ({
        ...(before.address === address && result.data === undefined ? before : {}),
        address,
        ...result,
      }));
      if (own.isAgain) setTurn((count) => count + 1);
    };
    send<T>(address).then(
      (data) => settle({ data }),
      (error: unknown) => settle({ error: (error as Error).message }),
    );
  }, [address, JSON.stringify(revision), turn]);
  const reload = (): void => setTurn((count) => count + 1);
  if (address === undefined || loaded.address !== address) return { reload };
  const { data, error } = loaded;
  return { ...(data === undefined ? {} : { data }), ...(error === undefined ? {} : { error }), reload };
}
