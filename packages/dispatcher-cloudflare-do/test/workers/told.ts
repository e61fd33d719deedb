type Env = { readonly OBJECTS: DurableObjectNamespace };

/** Asks one object for everything. */
export const theObject = {
  fetch: (request, { OBJECTS }) => OBJECTS.get(OBJECTS.idFromName("one")).fetch(request),
} satisfies ExportedHandler<Env>;

/** Answers 204 if all went well, else what was wrong. */
export async function told(work: () => Promise<void>): Promise<Response> {
  try {
    await work();
    return new Response(null, { status: 204 });
  } catch (error) {
    return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
  }
}
