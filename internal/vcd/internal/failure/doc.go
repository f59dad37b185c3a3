// SPDX-License-Identifier: Apache-2.0

// Package failure classifies failed requests to VCD. It reads error documents of both APIs, classifies requests without
// a response, and removes secrets and text that differs each time from messages. It knows neither how requests are sent
// nor what they are for.
package failure
