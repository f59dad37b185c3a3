// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const mountinfo = `30 20 0:26 / /sys/fs/cgroup rw - tmpfs none rw
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup none rw,cpu,cpuacct
32 30 0:28 /docker/a /sys/fs/cgroup/memory rw - cgroup none rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup none rw,xattr,release_agent=/x,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 none rw
`

func TestControlGroupLocations(t *testing.T) {
	for _, tc := range []struct {
		name, own, mounts string
		want              groupPlan
		message           string
	}{
		{
			name:   "version 1, alongside a version 2 without controllers",
			own:    "4:cpu,cpuacct:/\n3:memory:/docker/a/b\n2:name=systemd:/s\n1:pids:/not/mounted\n0::/\n",
			mounts: mountinfo,
			want: groupPlan{
				roots: []string{
					"/sys/fs/cgroup/cpu,cpuacct/sim", "/sys/fs/cgroup/memory/b/sim", "/sys/fs/cgroup/systemd/s/sim",
				},
				hidden: "/sys/fs/cgroup/unified",
			},
		},
		{
			name:   "version 2 alone: at the top, because a group with processes cannot have controllers",
			own:    "0::/user.slice/session\n",
			mounts: "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 none rw,nsdelegate\n",
			want:   groupPlan{unified: true, roots: []string{"/sys/fs/cgroup/sim"}},
		},
		{name: "none", own: "0::/\n", want: groupPlan{}, message: "none are mounted in /sys/fs/cgroup"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := planFrom(tc.own, tc.mounts, "sim")
			if tc.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plan).To(Equal(tc.want))
		})
	}
}

func TestArgumentsOfNspawn(t *testing.T) {
	g := NewWithT(t)
	l := launch{
		name:  "vm",
		files: files{"/state/vms/vm"},
		netns: "/proc/1/fd/7",
		disks: []loop{{path: "/dev/loop3", inside: "/dev/sdb"}},
		image: image{Init: "/init", ImageStore: "/store", Layers: []string{"/top", "/base"}},
	}
	args := l.arguments()
	g.Expect(args).To(ContainElements("--machine=vm", "--directory=/state/vms/vm/root", "--kill-signal=SIGRTMIN+4",
		"--network-namespace-path=/proc/1/fd/7", "--bind-ro=/state/vms/vm/info:/run/host/guestinfo",
		"--bind=/state/vms/vm/etcd:/var/lib/etcd", "--bind=/dev/loop3:/dev/sdb"))
	g.Expect(args[len(args)-1]).To(Equal("/init"))
	g.Expect(l.environment()).To(ContainElement("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=0"))
	l.groups.unified = true
	l.image.ImageStore = ""
	g.Expect(l.environment()).To(ContainElement("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"))
	g.Expect(l.arguments()).NotTo(ContainElement(ContainSubstring("/var/lib/etcd")), "it is not a node image")
	g.Expect(l.files.overlay(l.image)).To(Equal(
		"lowerdir=/top:/base,upperdir=/state/vms/vm/upper,workdir=/state/vms/vm/work"))
}

func TestAVMsCommandLineIsRecognized(t *testing.T) {
	g := NewWithT(t)
	f := files{"/state/vms/a"}
	g.Expect(isNspawnOf("/usr/bin/systemd-nspawn\x00--quiet\x00--directory=/state/vms/a/root\x00/init\x00", f)).To(BeTrue())
	g.Expect(isNspawnOf("systemd-nspawn\x00--directory=/state/vms/b/root\x00", f)).To(BeFalse(), "another VM")
	g.Expect(isNspawnOf("vi\x00--directory=/state/vms/a/root\x00", f)).To(BeFalse(), "another program")
	g.Expect(isNspawnOf("", f)).To(BeFalse(), "none")
}

func TestAForeignFolderIsRejected(t *testing.T) {
	g := NewWithT(t)
	dir := shortDir(t)
	file := filepath.Join(dir, "vms", "precious")
	g.Expect(os.MkdirAll(file, 0o700)).To(Succeed())
	g.Expect(openState(dir)).Error().To(MatchError(ContainSubstring("is not empty and not a state directory")))
	g.Expect(file).To(BeADirectory())

	g.Expect(os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600)).To(Succeed())
	s, err := openState(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file).NotTo(BeADirectory(), "left by a killed simulator")
	g.Expect(s.close()).To(Succeed())
	g.Expect(dir).NotTo(BeADirectory())
}

func TestFilesOfAVMAreReadableInsideIt(t *testing.T) {
	g := NewWithT(t)
	store := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(store, "meta.db"), []byte("db"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(store, "blob"), []byte("blob"), 0o600)).To(Succeed())
	f := files{t.TempDir()}
	img := image{ImageStore: store}
	g.Expect(os.MkdirAll(f.path("containerd.new/half"), 0o700)).To(Succeed(), "an earlier boot was killed")
	before := syscall.Umask(0o077)
	err := errors.Join(f.create(img), writeReadable(f.path("info/meminfo"), "MemTotal"))
	syscall.Umask(before)
	g.Expect(err).NotTo(HaveOccurred())

	for name, mode := range map[string]os.FileMode{"upper": 0o755, "kubelet": 0o755, "etcd": 0o755, "info/meminfo": 0o644} {
		info, err := os.Stat(f.path(name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(mode), name)
	}
	g.Expect(f.path("containerd/blob")).To(BeARegularFile())
	g.Expect(f.path("containerd/half")).NotTo(BeADirectory())
	g.Expect(f.path("containerd.new")).NotTo(BeADirectory())

	g.Expect(os.Chmod(f.path("etcd"), 0o700)).To(Succeed())
	g.Expect(os.RemoveAll(f.path("kubelet"))).To(Succeed())
	g.Expect(f.create(img)).To(Succeed())
	info, err := os.Stat(f.path("etcd"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)), "the guest's")
	g.Expect(f.path("kubelet")).To(BeADirectory())
}

func TestAnImageStoreIsCopiedToAnotherFilesystem(t *testing.T) {
	g := NewWithT(t)
	from := t.TempDir()
	to := filepath.Join(t.TempDir(), "containerd.new")
	g.Expect(os.WriteFile(filepath.Join(from, "blob"), []byte("blob"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("blob", filepath.Join(from, "link"))).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(to, "half"), 0o700)).To(Succeed())
	g.Expect(copyTree(from, to)).To(Succeed())
	g.Expect(os.Readlink(filepath.Join(to, "link"))).To(Equal("blob"))
	g.Expect(os.ReadFile(filepath.Join(to, "blob"))).To(BeEquivalentTo("blob"))
	g.Expect(filepath.Join(to, "half")).NotTo(BeADirectory())
}

func TestACrashedGuestReportsTheCause(t *testing.T) {
	g := NewWithT(t)
	console := filepath.Join(t.TempDir(), "console.log")
	g.Expect(os.WriteFile(console, []byte("1\n2\n3\n4\n\n5\r\nno init\n"), 0o600)).To(Succeed())
	g.Expect(exitError(0, console)).To(Succeed())
	g.Expect(exitError(exitReboot, console)).To(Succeed())
	died := exitError(1, console)
	g.Expect(died).To(MatchError(HaveSuffix("console.log:\n2\n3\n4\n5\nno init")))

	m := &machine{up: make(chan struct{}), died: make(chan error, 1)}
	m.died <- died
	g.Expect(m.awaitUp(t.Context(), time.Minute)).Error().To(MatchError(ContainSubstring("ended with code 1")))
}

func TestLogsOfVMsAreCopied(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	to := filepath.Join(t.TempDir(), "vms")
	g.Expect(CopyLogs(dir, to)).To(Succeed())
	g.Expect(to).NotTo(BeADirectory(), "there were no VMs")
	f := files{filepath.Join(dir, "vms", "id")}
	g.Expect(os.MkdirAll(f.dir, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(f.path("name"), []byte("node\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(f.console(), []byte("Welcome"), 0o600)).To(Succeed())
	pod := f.path("upper/var/log/pods/kube-system_etcd-node_1/etcd")
	g.Expect(os.MkdirAll(pod, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(pod, "0.log"), []byte("ready"), 0o600)).To(Succeed())
	g.Expect(CopyLogs(dir, to)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(to, "node-console.log"))).To(BeEquivalentTo("Welcome"))
	g.Expect(os.ReadFile(filepath.Join(to, "node-pods/kube-system_etcd-node_1_etcd_0.log"))).
		To(BeEquivalentTo("ready"))
}

func TestDedicatedThreadsAreNotTheMainThread(t *testing.T) {
	g := NewWithT(t)
	for range 100 {
		g.Expect(onThread(func() error {
			if unix.Gettid() == os.Getpid() {
				return errors.New("it is the first")
			}
			return nil
		})).To(Succeed())
	}
}

func TestOnlyFilesOfDeletedDisksAreRemoved(t *testing.T) {
	g := NewWithT(t)
	s := &stateDir{dir: t.TempDir()}
	g.Expect(os.MkdirAll(filepath.Dir(s.disk("a")), 0o700)).To(Succeed())
	for _, id := range []string{"gone", "kept"} {
		g.Expect(os.WriteFile(s.disk(id), nil, 0o600)).To(Succeed())
	}
	listed, err := s.listDisks()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(s.disk("new"), nil, 0o600)).To(Succeed())
	g.Expect(pruneDisks(listed, []vcdsim.Disk{{ID: "kept"}})).To(Succeed())
	g.Expect(s.disk("gone")).NotTo(BeARegularFile())
	g.Expect(s.disk("kept")).To(BeARegularFile())
	g.Expect(s.disk("new")).To(BeARegularFile(), "it may belong to a disk newer than the state")
}

// shortDir creates a folder. The path of t.TempDir is too long for socket addresses.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vms-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestGuestinfoResponses(t *testing.T) {
	g := NewWithT(t)
	var wrote []string
	info, err := serveGuestinfo(t.Context(), t.TempDir(), map[string]string{
		"guestinfo.metadata": "m",
		localIPv4:            "of the boot before",
	}, func(key, value string) { wrote = append(wrote, key+"="+value) })
	g.Expect(err).NotTo(HaveOccurred())
	defer info.close()
	for request, want := range map[string]string{
		"info-get guestinfo.metadata":            "1m",
		"info-get guestinfo.local-ipv4":          "0No value found",
		"info-set guestinfo.userdata.encoding  ": "1",
		"info-set disk.enabled 1":                "0Unable to write key",
		"log x":                                  "0Unknown command",
	} {
		g.Expect(info.answer(request)).To(Equal(want), request)
	}
	g.Expect(info.answer("info-set guestinfo.status a b")).To(Equal("1"))
	g.Expect(info.answer("info-get guestinfo.status")).To(Equal("1a b"))
	g.Expect(wrote).To(Equal([]string{"guestinfo.userdata.encoding= ", "guestinfo.status=a b"}))
}

func TestImages(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(images(dir)).To(BeEmpty())
	g.Expect(images(filepath.Join(dir, "missing"))).Error().To(MatchError(ContainSubstring("no such file")))
	write := func(text string) {
		g.Expect(os.WriteFile(filepath.Join(dir, "a.json"), []byte(text), 0o600)).To(Succeed())
	}
	write(`{"name": "a", "layers": ["top", "base"], "init": "/init"}`)
	g.Expect(images(dir)).Error().To(MatchError(ContainSubstring("top: no such file")))
	g.Expect(os.MkdirAll(filepath.Join(dir, "top"), 0o700)).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(dir, "base"), 0o700)).To(Succeed())
	g.Expect(images(dir)).To(HaveKeyWithValue("a", image{
		Image:  Image{Name: "a"},
		Layers: []string{filepath.Join(dir, "top"), filepath.Join(dir, "base")},
		Init:   "/init",
	}))
	write(`{"name": "a", "layers": ["top"]}`)
	g.Expect(images(dir)).Error().To(MatchError(ContainSubstring("an absolute init path are required")))
}

func TestMeminfoShowsTheMemoryOfTheVM(t *testing.T) {
	NewWithT(t).Expect(meminfo("MemTotal:       24000000 kB\nBuffers:  1 kB\n", 2048)).
		To(Equal("MemTotal:        2097152 kB\nBuffers:  1 kB\n"))
}

func TestMissingKernelFeatures(t *testing.T) {
	g := NewWithT(t)
	g.Expect(checkFilesystems("nodev\toverlay\nnodev\tcgroup2\n")).To(Succeed())
	g.Expect(checkFilesystems("nodev\tcgroup\n")).To(MatchError(ContainSubstring("overlayfs")))
	g.Expect(checkFilesystems("nodev\toverlay\n")).To(MatchError(ContainSubstring("control groups")))
}

func TestALimitIsRaisedAndNeverLowered(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "max_user_instances")
	g.Expect(os.WriteFile(file, []byte("128\n"), 0o600)).To(Succeed())
	g.Expect(raiseTo(1024, file)).To(BeTrue())
	g.Expect(readFile(file)).To(Equal("1024"))
	g.Expect(raiseTo(512, file)).To(BeFalse())
	g.Expect(readFile(file)).To(Equal("1024"))
	g.Expect(raiseTo(512, file+"-missing")).Error().To(HaveOccurred())
}

func TestVMNames(t *testing.T) {
	g := NewWithT(t)
	n := newNames(nil)
	n.add(vcdsim.GuestVM{Name: "node", Hostname: "localhost", NICs: []vcdsim.GuestNIC{{Address: netip.MustParseAddr("10.0.0.5")}}})
	ask := func(name string) dnsmessage.Message {
		q := dnsmessage.Message{Questions: []dnsmessage.Question{{
			Name:  dnsmessage.MustNewName(name),
			Type:  dnsmessage.TypeA,
			Class: dnsmessage.ClassINET,
		}}}
		request, err := q.Pack()
		g.Expect(err).NotTo(HaveOccurred())
		var answer dnsmessage.Message
		g.Expect(answer.Unpack(n.answer(request))).To(Succeed())
		return answer
	}
	g.Expect(ask("Node.").Answers[0].Body).To(Equal(&dnsmessage.AResource{A: [4]byte{10, 0, 0, 5}}))
	g.Expect(ask("example.com.").RCode).To(Equal(dnsmessage.RCodeNameError))
	g.Expect(n.answer([]byte("no request"))).To(BeNil())
}

func TestDNSIsServedOverUDPAndTCP(t *testing.T) {
	g := NewWithT(t)
	n := newNames(nil)
	n.add(vcdsim.GuestVM{Name: "node", Hostname: "node", NICs: []vcdsim.GuestNIC{{Address: netip.MustParseAddr("10.0.0.5")}}})
	s, err := listenDNS(netip.MustParseAddrPort("127.0.0.1:0"))
	g.Expect(err).NotTo(HaveOccurred())
	n.servers[netip.MustParseAddr("127.0.0.1")] = s
	defer n.close()
	go n.read(s.packets)
	go n.accept(s.streams)
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{
			PreferGo: true,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, s.streams.Addr().String())
			},
		}
		g.Expect(r.LookupNetIP(t.Context(), "ip4", "node.")).To(ConsistOf(netip.MustParseAddr("10.0.0.5")), network)
	}
}

func TestInterfaceNamesFitTheKernelLimit(t *testing.T) {
	NewWithT(t).Expect(len(outerName("00:50:56:01:AA:bb"))).To(BeNumerically("<", 16))
}
