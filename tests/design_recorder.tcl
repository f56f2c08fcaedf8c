# Runs a Vivado script without Vivado: every unknown command is recorded, then answered with what
# the script goes on with. One record a line; words are separated by tabs, a nested list by \x1f.
#
#   tclsh design_recorder.tcl SCRIPT RECORD [ARGUMENT ...]
set script [lindex $argv 0]
set record [open [lindex $argv 1] w]
set argv [lrange $argv 2 end]

# Queries answer with the object's own name, so that the record names what was asked for.
set queries {
    get_bd_intf_pins get_bd_intf_ports get_bd_pins get_bd_cells get_bd_addr_spaces get_bd_addr_segs
    get_files get_runs current_project current_fileset
}

namespace unknown record_command
proc record_command {name args} {
    set name [string trimleft $name :]
    if {$name in $::queries} { return [lindex $args end] }
    if {$name eq "get_property"} {
        return [dict get {PROGRESS 100% STATS.WNS 0.25} [lindex $args 0]]
    }
    set words [list $name]
    foreach word $args { lappend words [join $word \x1f] }
    puts $::record [join $words \t]
    return ""
}

# The files that only Vivado makes are not there to be copied.
rename file tcl_file
proc file {action args} {
    if {$action in {copy mkdir delete}} { return [record_command file $action {*}$args] }
    return [uplevel 1 [list tcl_file $action {*}$args]]
}

source $script
close $record
