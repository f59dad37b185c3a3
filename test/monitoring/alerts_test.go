// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// step is the interval between samples and between evaluations.
const step = time.Minute

// fires reports whether an alert fires at a time: its expression must have a result at each evaluation in the period of
// its for clause.
func fires(t *testing.T, engine *promql.Engine, samples storage.Storage, r rule, at time.Duration) bool {
	t.Helper()
	g := NewWithT(t)
	period, err := model.ParseDuration(r.For)
	g.Expect(err).NotTo(HaveOccurred())
	for ago := time.Duration(0); ago <= time.Duration(period); ago += step {
		query, err := engine.NewInstantQuery(context.WithoutCancel(t.Context()), samples, nil, r.Expr,
			time.Unix(0, 0).UTC().Add(at-ago))
		g.Expect(err).NotTo(HaveOccurred())
		result := query.Exec(t.Context())
		g.Expect(result.Err).NotTo(HaveOccurred())
		vector, err := result.Vector()
		g.Expect(err).NotTo(HaveOccurred())
		query.Close()
		if len(vector) == 0 {
			return false
		}
	}
	return true
}

// An alertCase contains samples of three hours in Prometheus' notation, and whether an alert must fire at their end.
type alertCase struct {
	alert, name string
	series      []string
	fires       bool
}

var alertCases = []alertCase{
	{
		"CAPVCDLoadBalancersPending",
		"one load balancer is pending",
		[]string{`capvcd_ccm_load_balancers{state="pending"} 1x180`, `capvcd_ccm_load_balancers{state="ready"} 9x180`},
		true,
	},
	{
		"CAPVCDLoadBalancersPending",
		"a load balancer is pending for five minutes",
		[]string{`capvcd_ccm_load_balancers{state="pending"} 0x160 1x5 0x15`},
		false,
	},
	{
		"CAPVCDLoadBalancersRejected",
		"a certificate is missing",
		[]string{`capvcd_ccm_rejected_services{reason="CertificateNotFound"} 1x180`},
		true,
	},
	{
		"CAPVCDLoadBalancersRejected",
		"the Service was corrected",
		[]string{`capvcd_ccm_rejected_services{reason="CertificateNotFound"} 1x100 _x80`},
		false,
	},
	{
		"CAPVCDGatewayNotObserved",
		"no observation for an hour",
		[]string{
			`capvcd_ccm_last_observation_timestamp_seconds{location=""} 7200x180`,
			`capvcd_ccm_load_balancers{state="ready"} 3x180`,
		},
		true,
	},
	{
		"CAPVCDGatewayNotObserved",
		"the gateway is no longer needed",
		[]string{
			`capvcd_ccm_last_observation_timestamp_seconds{location=""} 7200x180`,
			`capvcd_ccm_load_balancers{state="ready"} 0x180`,
		},
		false,
	},
	{"CAPVCDManagerAbsent", "no manager is scraped", []string{`up 1x180`}, true},
	{
		"CAPVCDManagerAbsent",
		"a manager is scraped",
		[]string{`controller_runtime_max_concurrent_reconciles{controller="vcdmachine"} 20x180`},
		false,
	},
	{
		"CAPVCDNoLeader",
		"one of two managers leads",
		[]string{
			`leader_election_master_status{name="controller-leader-election-capvcd",pod="a"} 0x180`,
			`leader_election_master_status{name="controller-leader-election-capvcd",pod="b"} 1x180`,
		},
		false,
	},
	{
		"CAPVCDNoLeader",
		"none of two managers leads",
		[]string{
			`leader_election_master_status{name="controller-leader-election-capvcd",pod="a"} 0x180`,
			`leader_election_master_status{name="controller-leader-election-capvcd",pod="b"} 0x180`,
		},
		true,
	},
	{
		"CAPVCDReconcileErrors",
		"occasional errors",
		[]string{`capvcd_passes_total{kind="VCDMachine",condition="VMCreated",outcome="error"} 0+0.1x180`},
		false,
	},
	{
		"CAPVCDReconcileErrors",
		"continuous errors",
		[]string{`capvcd_passes_total{kind="VCDMachine",condition="VMCreated",outcome="error"} 0+4x180`},
		true,
	},
	{
		"CAPVCDReconcileErrors",
		"many passes without errors",
		[]string{`capvcd_passes_total{kind="VCDMachine",condition="Ready",outcome="complete"} 0+400x180`},
		false,
	},
	{
		"CAPVCDQueueBacklog",
		"the queue becomes shorter",
		[]string{`workqueue_depth{name="vcdmachine",priority="0"} 300-10x30 0x150`},
		false,
	},
	{
		"CAPVCDQueueBacklog",
		"two priorities of a queue stay long",
		[]string{
			`workqueue_depth{name="vcdmachine",priority="0"} 60x180`,
			`workqueue_depth{name="vcdmachine",priority="-100"} 60x180`,
		},
		true,
	},
	{
		"CAPVCDWebhookCertificateUnreadable",
		"one error long ago",
		[]string{`certwatcher_read_certificate_errors_total 0x10 1x170`},
		false,
	},
	{
		"CAPVCDWebhookCertificateUnreadable",
		"continuous errors",
		[]string{`certwatcher_read_certificate_errors_total 0+1x180`},
		true,
	},
	{
		"CAPVCDSiteDown",
		"one of two sites is down",
		[]string{
			`capvcd_vcd_site_up{site="a"} 1x180`, `capvcd_vcd_site_up{site="b"} 1x120 0x60`,
		},
		true,
	},
	{"CAPVCDSiteDown", "the site is down for two minutes", []string{`capvcd_vcd_site_up{site="a"} 1 1 1 1 0 0 1x175`}, false},
	{
		"CAPVCDRequestsFailing",
		"a fifth of the requests fail",
		[]string{
			`capvcd_vcd_calls_total{site="a",operation="x",status="ok"} 0+80x180`,
			`capvcd_vcd_calls_total{site="a",operation="x",status="unavailable"} 0+20x180`,
		},
		true,
	},
	{
		"CAPVCDRequestsFailing",
		"VCD refuses requests, which is not a failure",
		[]string{
			`capvcd_vcd_calls_total{site="a",operation="x",status="ok"} 0+80x180`,
			`capvcd_vcd_calls_total{site="a",operation="x",status="forbidden"} 0+80x180`,
		},
		false,
	},
	{
		"CAPVCDRequestsSlow",
		"eight seconds per request",
		[]string{
			`capvcd_vcd_calls_total{site="a",operation="x",status="ok"} 0+10x180`,
			`capvcd_vcd_call_seconds_total{site="a"} 0+80x180`,
		},
		true,
	},
	{
		"CAPVCDRequestsSlow",
		"a third of a second per request",
		[]string{
			`capvcd_vcd_calls_total{site="a",operation="x",status="ok"} 0+30x180`,
			`capvcd_vcd_call_seconds_total{site="a"} 0+10x180`,
		},
		false,
	},
	{"CAPVCDThrottled", "VCD throttles requests", []string{`capvcd_vcd_throttled_total{site="a",by="vcd"} 0+6x180`}, true},
	{"CAPVCDThrottled", "only the client's rate limit applies", []string{`capvcd_vcd_throttled_total{site="a",by="rate_limit"} 0+60x180`}, false},
	{
		"CAPVCDClientThrottling",
		"five workers wait continuously",
		[]string{`capvcd_vcd_wait_seconds_total{site="a",by="rate_limit"} 0+300x180`},
		true,
	},
	{
		"CAPVCDClientThrottling",
		"calls wait occasionally",
		[]string{`capvcd_vcd_wait_seconds_total{site="a",by="in_flight"} 0+10x180`},
		false,
	},
	{
		"CAPVCDCredentialsRejected",
		"the credentials of one identity are rejected",
		[]string{`capvcd_vcd_credentials_refused{site="a"} 0x100 1x80`},
		true,
	},
	{"CAPVCDCredentialsRejected", "no credentials are rejected", []string{`capvcd_vcd_credentials_refused{site="a"} 0x180`}, false},
	{
		"CAPVCDInventoryStale",
		"other requests to the site succeed",
		[]string{
			`capvcd_vcd_inventory_age_seconds{site="a"} 0+60x180`, `capvcd_vcd_site_up{site="a"} 1x180`,
		},
		true,
	},
	{
		"CAPVCDInventoryStale",
		"the site is down, which has a separate alert",
		[]string{
			`capvcd_vcd_inventory_age_seconds{site="a"} 0+60x180`, `capvcd_vcd_site_up{site="a"} 0x180`,
		},
		false,
	},
	{
		"CAPVCDTasksFailing",
		"one failure per hour",
		[]string{`capvcd_vcd_tasks_total{site="a",operation="vappDeploy",result="failure"} 0x60 1x60 2x60`},
		false,
	},
	{
		"CAPVCDTasksFailing",
		"continuous failures",
		[]string{`capvcd_vcd_tasks_total{site="a",operation="vappDeploy",result="failure"} 0+0.2x180`},
		true,
	},
	{
		"CAPVCDTasksStuck",
		"two tasks run and none ends",
		[]string{
			`capvcd_vcd_tasks_running{site="a"} 2x180`,
			`capvcd_vcd_tasks_total{site="a",operation="vappDeploy",result="success"} 7x180`,
		},
		true,
	},
	{"CAPVCDTasksStuck", "no task has ever ended", []string{`capvcd_vcd_tasks_running{site="a"} 2x180`}, true},
	{
		"CAPVCDTasksStuck",
		"a busy site",
		[]string{
			`capvcd_vcd_tasks_running{site="a"} 2x180`,
			`capvcd_vcd_tasks_total{site="a",operation="vappDeploy",result="success"} 0+1x180`,
		},
		false,
	},
	{
		"CAPVCDClusterNotReady",
		"credentials are refused",
		[]string{conditions("VCDCluster", "Ready", "False", "CredentialsRejected", "1x180")},
		true,
	},
	{
		"CAPVCDClusterNotReady",
		"it waits for an IP address",
		[]string{conditions("VCDCluster", "Ready", "False", "WaitingForIPAddressClaim", "1x180")},
		false,
	},
	{"CAPVCDClusterNotReady", "it is ready", []string{conditions("VCDCluster", "Ready", "True", "Ready", "1x180")}, false},
	{
		"CAPVCDMachineNotReady",
		"two are powered off",
		[]string{conditions("VCDMachine", "Ready", "False", "VMPoweredOff", "0x100 2x80")},
		true,
	},
	{
		"CAPVCDMachineNotReady",
		"VCD is unreachable",
		[]string{conditions("VCDMachine", "Ready", "Unknown", "SiteUnreachable", "2x180")},
		true,
	},
	{
		"CAPVCDMachineNotReady",
		"they are being created",
		[]string{
			conditions("VCDMachine", "Ready", "False", "TaskRunning", "2x180"),
			conditions("VCDMachine", "Ready", "Unknown", "WaitingForEarlierPhase", "2x180"),
		},
		false,
	},
	{
		"CAPVCDMachineNotReady",
		"another condition reports a problem",
		[]string{conditions("VCDMachine", "LeaseLimited", "True", "LeaseLimited", "2x180")},
		false,
	},
	{
		"CAPVCDMachineWaiting",
		"a task runs for three hours",
		[]string{conditions("VCDMachine", "Ready", "False", "TaskRunning", "1x180")},
		true,
	},
	{
		"CAPVCDMachineWaiting",
		"a task runs for half an hour",
		[]string{conditions("VCDMachine", "Ready", "False", "TaskRunning", "0x150 1x30")},
		false,
	},
	{
		"CAPVCDOwnershipUnclear",
		"two VMs with the same marker",
		[]string{conditions("VCDMachine", "VMCreated", "False", "DuplicateMarker", "1x180")},
		true,
	},
	{
		"CAPVCDOwnershipUnclear",
		"a VM without its marker",
		[]string{conditions("VCDMachine", "VMInSync", "False", "MarkerNotFound", "1x180")},
		true,
	},
	{
		"CAPVCDBootstrapDataNotRemoved",
		"a right is missing",
		[]string{conditions("VCDMachine", "BootstrapDataRemoved", "False", "Forbidden", "1x180")},
		true,
	},
	{
		"CAPVCDBootstrapDataNotRemoved",
		"the extra configuration is hidden",
		[]string{conditions("VCDMachine", "BootstrapDataRemoved", "Unknown", "ExtraConfigHidden", "1x180")},
		true,
	},
	{
		"CAPVCDBootstrapDataNotRemoved",
		"nodes that have not joined yet",
		[]string{conditions("VCDMachine", "BootstrapDataRemoved", "False", "WaitingForNode", "9x180")},
		false,
	},
	{"CAPVCDOwnershipUnclear", "all VMs have clear owners", []string{conditions("VCDMachine", "VMCreated", "True", "Ready", "9x180")}, false},
	{
		"CAPVCDObjectsUnverified",
		"one VM for an hour",
		[]string{conditions("VCDMachine", "Ready", "Unknown", "VMUnverified", "0x120 1x60")},
		true,
	},
	{
		"CAPVCDObjectsUnverified",
		"one VM for minutes, while its absence is proved",
		[]string{conditions("VCDMachine", "VMDeleted", "False", "VMUnverified", "0x177 1x3")},
		false,
	},
	{
		"CAPVCDVMLossUnacknowledged",
		"a site lost all VMs",
		[]string{conditions("VCDMachine", "Ready", "Unknown", "VMLossUnacknowledged", "0x170 9x10")},
		true,
	},
	{
		"CAPVCDVMLossUnacknowledged",
		"one VM is unverified",
		[]string{conditions("VCDMachine", "Ready", "Unknown", "VMUnverified", "1x180")},
		false,
	},
	{
		"CAPVCDVMMissing",
		"one VM is missing",
		[]string{conditions("VCDMachine", "Ready", "False", "VMNotFound", "0x100 1x80")},
		true,
	},
	{"CAPVCDVMMissing", "no VM is missing", []string{conditions("VCDMachine", "Ready", "True", "Ready", "3x180")}, false},
	{
		"CAPVCDDrift",
		"one VM is renamed",
		[]string{conditions("VCDMachine", "VMInSync", "False", "VMRenamed", "1x180")},
		true,
	},
	{
		"CAPVCDDrift",
		"all VMs are in sync",
		[]string{conditions("VCDMachine", "VMInSync", "True", "Ready", "3x180")},
		false,
	},
	{
		"CAPVCDDeletionStuck",
		"one deletion takes two hours",
		[]string{`capvcd_oldest_deletion_age_seconds{kind="VCDMachine"} 0x60 0+60x120`},
		true,
	},
	{
		"CAPVCDDeletionStuck",
		"consecutive quick deletions",
		[]string{`capvcd_oldest_deletion_age_seconds{kind="VCDMachine"} 0 60 120 0 60 120 0x174`},
		false,
	},
	{
		"CAPVCDLeaseLimited",
		"the lease is limited",
		[]string{conditions("VCDMachine", "LeaseLimited", "True", "LeaseLimited", "3x180")},
		true,
	},
	{
		"CAPVCDLeaseLimited",
		"the condition does not exist",
		[]string{conditions("VCDMachine", "Ready", "True", "Ready", "3x180")},
		false,
	},
	{
		"CAPVCDProvisioningSlow",
		"most machines take long",
		[]string{
			`capvcd_provisioning_duration_seconds_bucket{kind="VCDMachine",le="1800"} 0+1x180`,
			`capvcd_provisioning_duration_seconds_bucket{kind="VCDMachine",le="3600"} 0+9x180`,
			`capvcd_provisioning_duration_seconds_bucket{kind="VCDMachine",le="+Inf"} 0+10x180`,
		},
		true,
	},
	{
		"CAPVCDProvisioningSlow",
		"machines take five minutes",
		[]string{
			`capvcd_provisioning_duration_seconds_bucket{kind="VCDMachine",le="300"} 0+10x180`,
			`capvcd_provisioning_duration_seconds_bucket{kind="VCDMachine",le="+Inf"} 0+10x180`,
		},
		false,
	},
}

func conditions(kind, condition, status, reason, values string) string {
	return fmt.Sprintf("capvcd_conditions{kind=%q,condition=%q,status=%q,reason=%q} %s", kind, condition, status,
		reason, values)
}

// TestAlertsFireWhenTheyShould evaluates the alerts on series of samples with Prometheus' engine.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	rules := map[string]rule{}
	for _, r := range readAlerts(t) {
		rules[r.Alert] = r
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	tested := map[string]map[bool]bool{}
	for _, s := range alertCases {
		if tested[s.alert] == nil {
			tested[s.alert] = map[bool]bool{}
		}
		tested[s.alert][s.fires] = true
		t.Run(s.alert+": "+s.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rules).To(HaveKey(s.alert))
			load := "load 1m\n"
			for _, series := range s.series {
				load += "  " + series + "\n"
			}
			samples := promqltest.LoadedStorage(t, load)

			g.Expect(fires(t, engine, samples, rules[s.alert], 3*time.Hour)).To(Equal(s.fires))
		})
	}
	for name := range rules {
		NewWithT(t).Expect(tested[name]).To(HaveLen(2),
			"%s needs a case in which it fires and one in which it does not", name)
	}
}
