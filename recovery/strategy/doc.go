// Package strategy contains the ways to retry a failed attempt, one file for each. A strategy is pure: it reads the
// situation and a failure and describes the next attempt. It does not decide when it is asked: package classify's table
// lists the strategies of each class, in order.
package strategy
