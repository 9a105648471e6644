// Package page looks at the gateway's page with a real browser: headless Chromium
// opens it, presses its keys, and what it shows is compared with what the gateway's
// interfaces tell. All of it is a test.
//
// It is not responsible for how the page looks: people look at that.
package page
