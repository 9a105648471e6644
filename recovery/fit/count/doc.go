// Package count estimates how many tokens of a request its upstream will report.
//
//	count, tools, media, image
//	           the tokens of a body: exact for plain conversations with OpenAI's models,
//	           else approximate
//	meter      the same, with a cache of counted parts
//	calibrate  how each model's reports differ from our counts
//	anchor     the upstream's report for the beginning of the same prompt, so that only
//	           the rest must be estimated
//
// The package does not know windows, or what happens to a request that exceeds one.
package count
