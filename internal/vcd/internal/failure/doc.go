// SPDX-License-Identifier: Apache-2.0

// Package failure classifies failed requests to VCD. It reads error documents of both APIs, classifies requests without
// a response, and removes secrets and variable text from messages. It is independent of how requests are sent and of
// their purpose.
package failure
