// A request to the gateway as a traced operation, around those of the object store.
import type { IncomingHttpHeaders } from "node:http";
import { trace } from "../telemetry/trace.ts";
import { asS3Error, type Answer } from "./http/answer.ts";
import type { Answerer, Exchange } from "./http/exchange.ts";

/** The client's trace comes with the headers of W3C Trace Context. */
export async function tracedAnswer(exchange: Exchange, location: string, answer: Answerer): Promise<Answer> {
  const { method, headers } = exchange.incoming;
  const about = () => ({ location, method, carried: carriedBy(headers) });
  return await trace("s3.request", about, async (message) => {
    if (message === undefined) return await answer(exchange);
    const note: Exchange["note"] = (facts) => {
      message.s3Operation = facts.operation ?? message.s3Operation;
      exchange.note(facts);
    };
    try {
      const answered = await answer({ ...exchange, note });
      message.status = answered.status;
      return answered;
    } catch (error) {
      message.status = asS3Error(error).status;
      throw error;
    }
  });
}

function carriedBy({ traceparent, tracestate }: IncomingHttpHeaders): Readonly<Record<string, string>>[] {
  if (typeof traceparent !== "string") return [];
  return [typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent }];
}
