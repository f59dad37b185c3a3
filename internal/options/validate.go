// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/wirelog"
)

// Validate returns all errors of the flags, each with the name of the flag and the remedy.
func (o *Options) Validate() error {
	_, tls := o.Serving.TLS()
	return errors.Join(
		name("namespace", o.Namespace, true), name("manager-namespace", o.ManagerNamespace, false), o.filter(),
		positive("vcd-requests-per-second", o.VCDRequestsPerSecond), positive("vcd-burst", o.VCDBurst),
		positive("vcd-in-flight", o.VCDInFlight),
		between("vcd-task-poll", o.VCDTaskPoll, 500*time.Millisecond, time.Minute),
		between("vcd-request-timeout", o.VCDRequestTimeout, time.Second, 10*time.Minute),
		between("vcd-lookup-ttl", o.VCDLookupTTL, time.Second, 24*time.Hour),
		between("vcd-session-idle", o.VCDSessionIdle, time.Minute, 24*time.Hour),
		between("vcd-wire-log-duration", o.VCDWireLogDuration, time.Second, wirelog.Max),
		positive("vcdcluster-concurrency", o.ClusterConcurrency),
		positive("vcdmachine-concurrency", o.MachineConcurrency),
		positive("vcdidentity-concurrency", o.IdentityConcurrency),
		between("sync-period", o.SyncPeriod, time.Second, 24*time.Hour),
		between("cloud-provider-sync-period", o.CloudProviderSyncPeriod, time.Second, 24*time.Hour), o.image(),
		positive("kube-api-qps", o.KubeAPIQPS), positive("kube-api-burst", o.KubeAPIBurst), o.phases(), o.leases(),
		o.port(), address("health-addr", o.HealthAddr), address("profiler-address", o.ProfilerAddress),
		address("diagnostics-address", o.Serving.Address), withFlag("tls-*", tls),
	)
}

// withFlag adds the name of the flag to an error.
func withFlag(flag string, err error) error {
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func positive[N int | float32 | float64](flag string, n N) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("--%s: is %v, but must be more than 0", flag, n)
}

func between(flag string, d, least, most time.Duration) error {
	if d >= least && d <= most {
		return nil
	}
	return fmt.Errorf("--%s: is %s, but must be from %s to %s", flag, d, least, most)
}

func name(flag, namespace string, optional bool) error {
	if namespace == "" && optional {
		return nil
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return fmt.Errorf("--%s: %q is not a valid namespace name: %s", flag, namespace, strings.Join(problems, "; "))
	}
	return nil
}

func (o *Options) filter() error {
	if problems := validation.IsValidLabelValue(o.WatchFilter); len(problems) > 0 {
		return fmt.Errorf("--watch-filter: %q is not a valid label value: %s", o.WatchFilter, strings.Join(problems, "; "))
	}
	return nil
}

func (o *Options) phases() error {
	known := []string{string(crdmigrator.StorageVersionMigrationPhase), string(crdmigrator.CleanupManagedFieldsPhase)}
	for _, phase := range o.SkipCRDMigrationPhases {
		if !slices.Contains(known, phase) {
			return fmt.Errorf("--skip-crd-migration-phases: %q is not one of %s", phase,
				strings.Join(known, " and "))
		}
	}
	return nil
}

// leases validates the durations of leader election. The election itself also does so later, with less clear errors.
func (o *Options) leases() error {
	switch {
	case o.RetryPeriod <= 0:
		return fmt.Errorf("--leader-elect-retry-period: is %s, but must be more than 0s", o.RetryPeriod)
	case o.RenewDeadline <= time.Duration(leaderelection.JitterFactor*float64(o.RetryPeriod)):
		return fmt.Errorf("--leader-elect-renew-deadline: is %s, but must be more than %.1f times --leader-elect-retry-period (%s)",
			o.RenewDeadline, leaderelection.JitterFactor, o.RetryPeriod)
	case o.LeaseDuration <= o.RenewDeadline:
		return fmt.Errorf("--leader-elect-lease-duration: is %s, but must be more than --leader-elect-renew-deadline (%s)", o.LeaseDuration, o.RenewDeadline)
	}
	return nil
}

// tag matches image tags.
var tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

func (o *Options) image() error {
	if v := o.CloudProviderVersion; v != "" && (!tag.MatchString(v) || v == "latest") {
		return fmt.Errorf("--cloud-provider-version: %q is not a version: it must be an image tag other than latest", v)
	}
	if r := o.CloudProviderRegistry; strings.Contains(r, "://") || strings.ContainsAny(r, " \t\n\"") {
		return fmt.Errorf("--cloud-provider-registry: %q is not a registry: remove the scheme, as in registry.example.com/vcd", r)
	}
	return nil
}

func (o *Options) port() error {
	if o.WebhookPort < 1 || o.WebhookPort > 65535 {
		return fmt.Errorf("--webhook-port: is %d, but must be from 1 to 65535", o.WebhookPort)
	}
	return nil
}

// address validates [host]:port. The empty string and 0 disable a server.
func address(flag, value string) error {
	if value == "" || value == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("--%s: %q is not an address of the form [host]:port", flag, value)
	}
	return nil
}
