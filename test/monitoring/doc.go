// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the dashboard and the alerts in config/monitoring: with Prometheus' own parser against
// metrics that the client and the controllers really make, and with its engine against samples.
package monitoring
