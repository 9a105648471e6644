// Command learning shows what learning from outcomes brings: agents whose hidden
// chances of success, by strategy, it draws from a seed, and the policy of the
// gateway, which knows only outcomes. "make learn-docs" writes docs/learning.md.
package main
