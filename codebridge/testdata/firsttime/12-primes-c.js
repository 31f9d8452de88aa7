const factor = async (n: number): Promise<any> => (await openclaw.tools.call("prime_factors", { n })).details;
return Promise.all([84, 97, 1001].map(factor));
